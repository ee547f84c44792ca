//! Conversion of an editor's prompt to prompt text. Files are converted to mentions, and images and long texts are
//! stored as artifacts.

use super::host::FileProvider;
use super::markdown::fence;
use super::places::{self, FileLocation};
use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;

const MAX_BLOCKS: usize = 500;
/// Maximum size of a prompt in bytes.
const MAX_BYTES: usize = 4 << 20;
/// Size in bytes above which an embedded text is stored as an artifact, which the model can read like a file.
const INLINE_BYTES: usize = 32 << 10;

/// Converts content blocks to a prompt. Returns the reason if the prompt cannot be sent.
pub(crate) async fn prompt(blocks: Vec<ContentBlock>, directory: &Path, files: &dyn FileProvider) -> Result<String, String> {
    if blocks.len() > MAX_BLOCKS {
        return Err(format!("the prompt has {} parts; the limit is {MAX_BLOCKS}", blocks.len()));
    }
    let mut prompt = PromptText::default();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => prompt.push_text(&text.text),
            ContentBlock::Image(image) => prompt.name(&store_image(&image.data, files).await?),
            ContentBlock::ResourceLink(link) => match places::parse_uri(&link.uri).and_then(|place| place.mention(directory)) {
                Some(mention) => prompt.name(&mention),
                None => prompt.name(&format!("{} ({})", one_line(&link.name), one_line(&link.uri))),
            },
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    let place = places::parse_uri(&text.uri);
                    let name = place.as_ref().map_or_else(|| one_line(&text.uri), |place| mention_name(place, directory));
                    prompt.attach(&name, text.text, files).await?;
                }
                EmbeddedResourceResource::BlobResourceContents(blob) => {
                    if blob.mime_type.as_deref().is_some_and(|kind| kind.starts_with("image/")) {
                        prompt.name(&store_image(&blob.blob, files).await?);
                    } else {
                        let name = one_line(&blob.uri);
                        return Err(format!(
                            "`{name}` is neither text nor an image; pass the file name instead, so that the \
                            model can read it with its tools"
                        ));
                    }
                }
                _ => return Err(UNKNOWN.to_owned()),
            },
            ContentBlock::Audio(_) => {
                return Err("a prompt cannot contain audio; only text, images and files are supported".to_owned());
            }
            _ => return Err(UNKNOWN.to_owned()),
        }
        if prompt.text.len() + prompt.behind.len() > MAX_BYTES {
            return Err(format!("the prompt is larger than {} MB; pass file names instead of file content", MAX_BYTES >> 20));
        }
    }
    let text = prompt.into_text();
    if text.trim().is_empty() { Err("the prompt is empty".to_owned()) } else { Ok(text) }
}

const UNKNOWN: &str = "the prompt has a part of an unknown type; only text, images and files are supported";

/// Text that follows the name of an embedded text.
const AS_IT_IS: &str = ", current content in the editor:";

#[derive(Default)]
struct PromptText {
    text: String,
    /// Embedded texts, which are appended to the user's text.
    behind: String,
    /// Whether the text currently ends with a mention, which must be separated from any text that follows.
    named: bool,
}

impl PromptText {
    fn push_text(&mut self, words: &str) {
        if self.named && !words.starts_with(|letter: char| letter.is_whitespace() || ".,;:!?)]}".contains(letter)) {
            self.text.push(' ');
        }
        self.text.push_str(words);
        self.named &= words.is_empty();
    }

    fn name(&mut self, name: &str) {
        if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
        self.text.push_str(name);
        self.named = true;
    }

    async fn attach(&mut self, name: &str, text: String, files: &dyn FileProvider) -> Result<(), String> {
        self.behind.push_str("\n\n");
        if text.len() > INLINE_BYTES || contains_mention(&text) {
            let uri = files.keep_text(name.to_owned(), text).await?;
            self.behind.extend([name, AS_IT_IS, " @", &uri]);
            return Ok(());
        }
        let fence = fence(&text);
        let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
        self.behind.extend([name, AS_IT_IS, "\n", &fence, "\n", &text, end, &fence]);
        Ok(())
    }

    fn into_text(self) -> String {
        let whole = self.text + &self.behind;
        whole.trim_start_matches('\n').to_owned()
    }
}

/// Returns whether any part of the text would be interpreted as a file mention.
fn contains_mention(text: &str) -> bool {
    text.split(char::is_whitespace).any(|word| {
        word.split_once('@').is_some_and(|(before, after)| {
            !before.ends_with(char::is_alphanumeric) && after.contains(['/', '.', '"']) && !after.starts_with('@')
        })
    })
}

fn mention_name(place: &FileLocation, directory: &Path) -> String {
    let name = places::relative_path(&place.path, directory);
    match place.lines {
        None => name,
        Some((first, last)) if first == last => format!("{name}, line {first}"),
        Some((first, last)) => format!("{name}, lines {first} to {last}"),
    }
}

async fn store_image(data: &str, files: &dyn FileProvider) -> Result<String, String> {
    let bytes = STANDARD.decode(data.trim()).map_err(|error| format!("the image is not valid base64: {error}"))?;
    Ok(format!("@{}", files.keep_image(bytes).await?))
}

/// Replaces line breaks in a name, which could otherwise imitate the user's text.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ").chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol::v1::schema::{EmbeddedResource, ImageContent, ResourceLink, TextResourceContents};
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    struct NoFiles;

    impl FileProvider for NoFiles {
        fn text(&self, _: &Path) -> BoxFuture<'static, Option<String>> {
            async { None }.boxed()
        }

        fn keep_image(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String, String>> {
            async move { Ok(format!("artifact:{}", bytes.len())) }.boxed()
        }

        fn keep_text(&self, _: String, text: String) -> BoxFuture<'static, Result<String, String>> {
            async move { Ok(format!("artifact:{}", text.len())) }.boxed()
        }
    }

    fn prompt_text(blocks: Vec<ContentBlock>) -> Result<String, String> {
        prompt(blocks, Path::new("/w"), &NoFiles).now_or_never().unwrap()
    }

    fn along(uri: &str, text: &str) -> ContentBlock {
        let contents = TextResourceContents::new(text, uri);
        ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(contents)))
    }

    #[test]
    fn prompts_mention_linked_files_and_append_embedded_content() {
        let link = || ContentBlock::ResourceLink(ResourceLink::new("main.rs", "file:///w/src/main.rs"));
        let text = |words: &str| ContentBlock::from(words.to_owned());
        assert_eq!(prompt_text(vec![text("explain"), link(), text("please")]).unwrap(), "explain @src/main.rs please");
        assert_eq!(prompt_text(vec![text("see "), link(), text(", and go")]).unwrap(), "see @src/main.rs, and go");
        let web = ContentBlock::ResourceLink(ResourceLink::new("a\nb", "https://example.org/"));
        assert_eq!(prompt_text(vec![web]).unwrap(), "a b (https://example.org/)");
        assert_eq!(
            prompt_text(vec![along("file:///w/a.rs#L2-3", "let a = \"```\";"), text("why?")]).unwrap(),
            "why?\n\na.rs, lines 2 to 3, current content in the editor:\n````\nlet a = \"```\";\n````"
        );
        let image = ContentBlock::Image(ImageContent::new("AAAA", "image/png"));
        assert_eq!(prompt_text(vec![text("what is this?"), image]).unwrap(), "what is this? @artifact:3");
    }

    #[test]
    fn long_content_and_content_that_would_mention_files_become_artifacts() {
        let kept = prompt_text(vec![along("file:///w/a.ts", "import x from \"@types/node\";")]).unwrap();
        assert_eq!(kept, "a.ts, current content in the editor: @artifact:28");
        assert!(prompt_text(vec![along("untitled:1", &"x".repeat(40_000))]).unwrap().ends_with("@artifact:40000"));
        assert!(prompt_text(vec![along("untitled:1", "me@example.org")]).unwrap().contains("me@example.org"));
    }

    #[test]
    fn prompts_that_cannot_be_sent_are_rejected_with_a_hint() {
        assert!(prompt_text(vec![]).unwrap_err().contains("empty"));
        let image = ContentBlock::Image(ImageContent::new("no base64!", "image/png"));
        assert!(prompt_text(vec![image]).unwrap_err().contains("base64"));
        assert!(prompt_text(vec![ContentBlock::from("x".repeat(5 << 20))]).unwrap_err().contains("file names"));
    }
}
