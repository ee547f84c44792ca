//! Images, which are stored unchanged and shown to models that accept them.

use crate::ports::Artifacts;
use crate::protocol::Image;
use crate::tools::call_result::ToolOutput;
use crate::tools::output::keep_image;
use std::fmt::Write as _;

/// Maximum image size in bytes. Providers accept 5 MB in base64 encoding.
const MAX_BYTES: usize = 5 * 1024 * 1024 / 4 * 3;
/// Maximum number of pixels along the longer side.
const MAX_PIXELS: usize = 8_000;

/// Describes and stores an image. Returns `None` if its dimensions cannot be read.
pub(in crate::tools) fn describe(
    media_type: &'static str,
    bytes: &[u8],
    name: &str,
    artifacts: Option<&dyn Artifacts>,
) -> Option<ToolOutput> {
    let size = imagesize::blob_size(bytes).ok().filter(|size| size.width > 0 && size.height > 0)?;
    let kind = media_type.trim_start_matches("image/");
    let mut text = format!("Image, {}x{} {kind}, {} bytes", size.width, size.height, bytes.len());
    if bytes.len() > MAX_BYTES || size.width.max(size.height) > MAX_PIXELS {
        let _ = write!(
            text,
            "\n[too large to show: models accept at most {MAX_BYTES} bytes and {MAX_PIXELS} pixels per side; make a smaller copy \
             with RunCommand, for example `convert -resize 1500x1500`, and read the copy]"
        );
        return Some(text.into());
    }
    let Some(artifacts) = artifacts else { return Some(text.into()) };
    match keep_image(artifacts, bytes, name, media_type) {
        Ok(kept) => {
            let image = Image {
                uri: kept.uri.clone(),
                media_type: media_type.to_owned(),
                width: u32::try_from(size.width).unwrap_or(u32::MAX),
                height: u32::try_from(size.height).unwrap_or(u32::MAX),
                bytes: bytes.len() as u64,
            };
            Some(ToolOutput { text, artifacts: vec![kept], images: vec![image], ..ToolOutput::default() })
        }
        Err(error) => {
            let _ = write!(text, "\n[the image cannot be shown: {error}]");
            Some(text.into())
        }
    }
}
