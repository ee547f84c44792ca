//! Images: known by their content, kept whole, and shown to models that take them.

use crate::ports::{ArtifactError, Artifacts, NewArtifact};
use crate::protocol::{Artifact, ArtifactKind, Image, Target};
use crate::tools::tool::Told;
use std::fmt::Write as _;

/// As base64 an image may have 5 MB, which is what providers take.
const MOST_BYTES: usize = 5 * 1024 * 1024 / 4 * 3;
/// On its longer side.
const MOST_PIXELS: usize = 8_000;

/// The kind a file is of by its first bytes: `png`.
pub(super) fn kind(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("webp"),
        _ => None,
    }
}

/// What a file tells that is such an image; nothing where its size cannot be read from it.
pub(super) fn told(kind: &'static str, bytes: &[u8], target: &Target, artifacts: Option<&dyn Artifacts>) -> Option<Told> {
    let size = imagesize::blob_size(bytes).ok().filter(|size| size.width > 0 && size.height > 0)?;
    let mut text = format!("Image, {}x{} {kind}, {} bytes", size.width, size.height, bytes.len());
    if bytes.len() > MOST_BYTES || size.width.max(size.height) > MOST_PIXELS {
        let _ = write!(
            text,
            "\n[too large to be shown: models take {MOST_BYTES} bytes and {MOST_PIXELS} pixels a side; make a smaller copy with \
             RunCommand, for example `convert -resize 1500x1500`, and read that]"
        );
        return Some(text.into());
    }
    let Some(artifacts) = artifacts else { return Some(text.into()) };
    let media_type = format!("image/{kind}");
    match keep(artifacts, &media_type, &target.given, bytes) {
        Ok(kept) => {
            let image = Image {
                uri: kept.uri.clone(),
                media_type,
                width: u32::try_from(size.width).unwrap_or(u32::MAX),
                height: u32::try_from(size.height).unwrap_or(u32::MAX),
                bytes: bytes.len() as u64,
            };
            Some(Told { text, artifacts: vec![kept], images: vec![image], ..Told::default() })
        }
        Err(error) => {
            let _ = write!(text, "\n[it cannot be shown: {error}]");
            Some(text.into())
        }
    }
}

fn keep(artifacts: &dyn Artifacts, media_type: &str, name: &str, bytes: &[u8]) -> Result<Artifact, ArtifactError> {
    let new = NewArtifact { kind: ArtifactKind::Image, name: name.to_owned(), content_type: media_type.to_owned() };
    let mut writer = artifacts.begin(new)?;
    writer.write(bytes)?;
    writer.finish()
}
