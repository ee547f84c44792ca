//! Messages that a server sends to the model. They are parsed and restricted to text and images.

use crate::agent::context::estimate;
use crate::agent::limits::{
    MAX_IMAGE_TOKENS, SAMPLE_BYTES, SAMPLE_IMAGE_BYTES, SAMPLE_IMAGES, SAMPLE_MESSAGES, SAMPLE_SHOWN_BYTES,
};
use crate::ports::Images;
use crate::protocol::{Image, Message, MessageId, Part, Role, TaskId};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

#[derive(Debug)]
pub(crate) struct SamplingMessages {
    pub system: Arc<str>,
    pub messages: Vec<Arc<Message>>,
    pub images: Images,
    pub most_tokens: u64,
}

/// Parses a sampling request. `images` says whether the model supports images.
pub(crate) fn read(request: &Value, images: bool) -> Result<SamplingMessages, String> {
    if ["tools", "toolChoice"].iter().any(|key| !request[key].is_null()) {
        return Err("tools are not supported in sampling requests".to_owned());
    }
    let most_tokens = request["maxTokens"].as_u64().filter(|most| *most > 0).ok_or("`maxTokens` must be at least 1")?;
    let system = request["systemPrompt"].as_str().unwrap_or_default();
    let asked = request["messages"].as_array().filter(|asked| !asked.is_empty()).ok_or("`messages` is empty or missing")?;
    if asked.len() > SAMPLE_MESSAGES {
        return Err(format!("the request has {} messages, more than the limit of {SAMPLE_MESSAGES}", asked.len()));
    }
    let mut reader = Reader { bytes: system.len(), takes_images: images, images: HashMap::new() };
    let messages: Vec<Arc<Message>> =
        asked.iter().enumerate().map(|(at, message)| reader.message(at, message).map(Arc::new)).collect::<Result<_, String>>()?;
    if reader.bytes > SAMPLE_BYTES {
        return Err(format!("the messages are {} bytes, more than the limit of {SAMPLE_BYTES}", reader.bytes));
    }
    if messages.last().is_none_or(|last| last.role != Role::User) {
        return Err("the last message must have the role `user`".to_owned());
    }
    Ok(SamplingMessages { system: system.into(), messages, images: Arc::new(reader.images), most_tokens })
}

struct Reader {
    bytes: usize,
    takes_images: bool,
    images: HashMap<String, Arc<str>>,
}

impl Reader {
    fn message(&mut self, at: usize, message: &Value) -> Result<Message, String> {
        let role = match message["role"].as_str() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err("the role of a message must be `user` or `assistant`".to_owned()),
        };
        let blocks = match &message["content"] {
            Value::Array(blocks) => blocks.as_slice(),
            one => std::slice::from_ref(one),
        };
        let content = blocks.iter().map(|block| self.part(role, block)).collect::<Result<Vec<_>, _>>()?;
        if content.is_empty() {
            return Err("a message has no content".to_owned());
        }
        Ok(Message {
            message_id: MessageId::new(format!("sampling_{at}")),
            role,
            token_count: estimate(&content),
            content,
            task_id: TaskId::new("sampling"),
            step_id: None,
            timestamp: jiff::Timestamp::UNIX_EPOCH,
        })
    }

    fn part(&mut self, role: Role, block: &Value) -> Result<Part, String> {
        match block["type"].as_str() {
            Some("text") => {
                let text = block["text"].as_str().ok_or("a text block has no `text`")?;
                self.bytes += text.len();
                Ok(Part::Text { text: text.to_owned() })
            }
            Some("image") if role == Role::User => self.image(block),
            Some(kind @ ("image" | "audio" | "tool_use" | "tool_result")) => {
                Err(format!("unsupported content `{kind}`: only text, and images from the user, are supported"))
            }
            _ => Err("unknown content type: expected text or an image".to_owned()),
        }
    }

    fn image(&mut self, block: &Value) -> Result<Part, String> {
        if !self.takes_images {
            return Err("the request contains an image, and the model of this session does not support images".to_owned());
        }
        let media_type = block["mimeType"].as_str().filter(|kind| IMAGE_TYPES.contains(kind));
        let media_type =
            media_type.ok_or_else(|| format!("unsupported image type: expected one of {}", IMAGE_TYPES.join(", ")))?;
        let data = block["data"].as_str().unwrap_or_default();
        if data.len() > SAMPLE_IMAGE_BYTES || self.images.len() == SAMPLE_IMAGES {
            return Err(format!(
                "too many images, or an image is too large: at most {SAMPLE_IMAGES} images of up to {} MB each are allowed",
                SAMPLE_IMAGE_BYTES >> 20
            ));
        }
        let bytes = BASE64_STANDARD.decode(data).map_err(|_| "an image is not valid base64")?.len() as u64;
        let uri = format!("sampling:{}", self.images.len());
        self.images.insert(uri.clone(), data.into());
        // The image's dimensions are unknown, so assume the largest possible image.
        Ok(Part::Image(Image { uri, media_type: media_type.to_owned(), width: 0, height: 0, bytes }))
    }
}

impl SamplingMessages {
    /// Estimates the number of tokens in the request.
    pub(crate) fn tokens(&self) -> u64 {
        let words: u64 = self.messages.iter().map(|message| message.token_count).sum();
        let system = estimate(&[Part::Text { text: self.system.to_string() }]);
        words + system + MAX_IMAGE_TOKENS * self.images.len() as u64
    }

    /// Returns the complete request as text for the user to review. Returns an error if the request is too long for
    /// that.
    pub(crate) fn to_review_text(&self, server: &str, model: &str) -> Result<String, String> {
        let mut words = format!(
            "The server sends a request for up to {} tokens to {model}, the model of this session. The tokens count toward your \
             budget, and the response goes to {server}. The complete request:\n",
            self.most_tokens
        );
        let mut say = |who: &str, text: &str| {
            let _ = write!(words, "\n{who}: {text}");
        };
        if !self.system.is_empty() {
            say("system", &self.system);
        }
        for message in &self.messages {
            let who = if message.role == Role::User { "user" } else { "assistant" };
            for part in &message.content {
                match part {
                    Part::Text { text } => say(who, text),
                    Part::Image(image) => say(who, &format!("[{}, {} bytes]", image.media_type, image.bytes)),
                    Part::Reasoning { .. } | Part::ToolCall(_) | Part::ToolResult(_) => {}
                }
            }
        }
        if words.len() > SAMPLE_SHOWN_BYTES {
            return Err(format!("the request is {} bytes, too long to review (limit {SAMPLE_SHOWN_BYTES})", words.len()));
        }
        Ok(words)
    }
}
