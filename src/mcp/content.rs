//! Conversion of content received from a server to the types used by the ports. The size is limited here, but the
//! content is not sanitized.

use super::failure::too_large_error;
use super::limits::MESSAGE_BYTES;
use crate::ports::{RemoteContent, RemoteError, RemoteResult};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role};

pub(super) fn convert_call_result(result: CallToolResult) -> Result<RemoteResult, RemoteError> {
    let structured_bytes = result.structured_content.as_ref().map_or(0, |value| value.to_string().len());
    let content = result.content.into_iter().map(block).collect::<Vec<_>>();
    check_size(
        RemoteResult { content, structured: result.structured_content, is_error: result.is_error == Some(true) },
        structured_bytes,
    )
}

pub(super) fn convert_resource(result: ReadResourceResult) -> Result<RemoteResult, RemoteError> {
    let content = result.contents.into_iter().map(resource).collect();
    check_size(RemoteResult { content, structured: None, is_error: false }, 0)
}

/// Returns the text of a prompt. Messages with a role other than `user` are marked with their role.
pub(super) fn convert_prompt(result: GetPromptResult) -> Result<String, RemoteError> {
    let mut text = String::new();
    for message in result.messages {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        if message.role == Role::Assistant {
            text.push_str("(assistant:)\n");
        }
        match block(message.content) {
            RemoteContent::Text(said) => text.push_str(&said),
            RemoteContent::Resource { uri, text: content, .. } => {
                text.push_str(&uri);
                text.push_str(":\n");
                text.push_str(&content);
            }
            RemoteContent::Link { uri, .. } => text.push_str(&uri),
            RemoteContent::Bytes { media_type, .. } => {
                text.push('[');
                text.push_str(&media_type);
                text.push_str(": not supported in a prompt]");
            }
        }
        if text.len() > MESSAGE_BYTES {
            return Err(too_large_error());
        }
    }
    Ok(text)
}

fn block(block: ContentBlock) -> RemoteContent {
    match block {
        ContentBlock::Text(text) => RemoteContent::Text(text.text),
        ContentBlock::Image(image) => bytes(&image.data, image.mime_type, None),
        ContentBlock::Audio(audio) => bytes(&audio.data, audio.mime_type, None),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            RemoteContent::Link { uri: link.uri, name: link.name, description: link.description, media_type: link.mime_type }
        }
        _ => RemoteContent::Text("[content of an unknown kind]".to_owned()),
    }
}

fn resource(contents: ResourceContents) -> RemoteContent {
    match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            RemoteContent::Resource { uri, media_type: mime_type, text }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            bytes(&blob, mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()), Some(uri))
        }
        _ => RemoteContent::Text("[content of an unknown kind]".to_owned()),
    }
}

fn bytes(data: &str, media_type: String, uri: Option<String>) -> RemoteContent {
    match BASE64_STANDARD.decode(data.trim()) {
        Ok(bytes) => RemoteContent::Bytes { media_type, bytes, uri },
        Err(_) => RemoteContent::Text(format!("[{media_type}: invalid base64]")),
    }
}

fn check_size(result: RemoteResult, more: usize) -> Result<RemoteResult, RemoteError> {
    let size = |content: &RemoteContent| match content {
        RemoteContent::Text(text) => text.len(),
        RemoteContent::Bytes { bytes, .. } => bytes.len(),
        RemoteContent::Resource { uri, text, .. } => uri.len() + text.len(),
        RemoteContent::Link { uri, name, .. } => uri.len() + name.len(),
    };
    if result.content.iter().map(size).sum::<usize>() + more > MESSAGE_BYTES { Err(too_large_error()) } else { Ok(result) }
}
