//! Images of results: which of them a request shows, and what is said of those it does not.

use crate::ports::ModelRequest;
use crate::protocol::{Image, Message, Part, ToolResult};

/// Of each image of a message, whether it is shown.
pub(super) fn shown_of(message: &Message, request: &ModelRequest) -> Vec<bool> {
    let results = message.content.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCall(_) => None,
    });
    results.flat_map(|result| &result.images).map(|image| content(image, request).is_some()).collect()
}

/// The text of a result, and the images that go with it: media type and base64.
pub(super) fn told<'a>(result: &'a ToolResult, request: &'a ModelRequest) -> (String, Vec<(&'a str, &'a str)>) {
    let mut text = result.text_for_model();
    let shown: Vec<_> =
        result.images.iter().filter_map(|image| Some((image.media_type.as_str(), content(image, request)?))).collect();
    if shown.len() < result.images.len() {
        let note = match &request.images {
            None => "[not shown: this model takes no images]",
            Some(_) => "[not shown any more: only the newest images are sent along; read it again to see it]",
        };
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{gap}{note}");
    }
    (text, shown)
}

fn content<'a>(image: &Image, request: &'a ModelRequest) -> Option<&'a str> {
    request.images.as_ref()?.get(&image.uri).map(AsRef::as_ref)
}
