//! Images in messages: choosing those to include in a request, and describing the omitted ones.

use crate::ports::ModelRequest;
use crate::protocol::{Image, Message, ToolResult};

/// Returns whether each image in a message is included in the request.
pub(super) fn sent_images(message: &Message, request: &ModelRequest) -> Vec<bool> {
    message.images().map(|image| content(image, request).is_some()).collect()
}

/// Returns the text of a tool result, and the media type and base64 data of each of its images that is included in the
/// request.
pub(super) fn sent_content<'a>(result: &'a ToolResult, request: &'a ModelRequest) -> (String, Vec<(&'a str, &'a str)>) {
    let mut text = result.text_for_model();
    let shown: Vec<_> =
        result.images.iter().filter_map(|image| Some((image.media_type.as_str(), content(image, request)?))).collect();
    if shown.len() < result.images.len() {
        let note = omitted_note(request);
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{gap}{note}");
    }
    (text, shown)
}

pub(super) fn content<'a>(image: &Image, request: &'a ModelRequest) -> Option<&'a str> {
    request.images.as_ref()?.get(&image.uri).map(AsRef::as_ref)
}

/// Returns the note that takes the place of an omitted image.
pub(super) fn omitted_note(request: &ModelRequest) -> &'static str {
    match &request.images {
        None => "[not shown: this model does not support images]",
        Some(_) => "[no longer shown: only the newest images are sent; read it again to see it]",
    }
}
