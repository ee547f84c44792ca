//! Detects images by their first bytes, and stores them.

use super::new;
use crate::ports::{ArtifactError, Artifacts};
use crate::protocol::{Artifact, ArtifactKind};

/// Returns the media type of an image that models accept, whatever its name or declared type. Returns `None` for
/// anything else.
pub(in crate::tools) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

pub(in crate::tools) fn keep_image(
    artifacts: &dyn Artifacts,
    bytes: &[u8],
    name: &str,
    media_type: &str,
) -> Result<Artifact, ArtifactError> {
    let mut writer = artifacts.begin(new(ArtifactKind::Image, name, media_type))?;
    writer.write(bytes)?;
    writer.finish()
}
