//! Prompt attachments, which are files dropped on the terminal and images from the clipboard.

use crate::host::context::AppContext;
use crate::ports::{ArtifactError, Artifacts, NewArtifact};
use crate::protocol::{ArtifactKind, ClipboardData, DroppedFile, Image};
use crate::sys::clipboard::{self, ClipboardContent};
use crate::workspace::files::TOKEN_BYTES;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of an image in bytes. It corresponds to the providers' limit of 5 MB for images in Base64.
const MAX_BYTES: usize = 5 * 1024 * 1024 / 4 * 3;
/// Maximum length of the longer side of an image, in pixels.
const MAX_PIXELS: usize = 8_000;
/// Number of leading bytes that are read to identify the format of an image.
const BEGIN: u64 = 32;
const CLIPBOARD: &str = "image from the clipboard";
/// Maximum size of pasted text, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// Returns the files of the first reading of the dropped text in which all files exist. Returns an empty list if there
/// is no such reading.
pub(crate) fn resolve_dropped(app: &AppContext, readings: &[Vec<String>]) -> Vec<DroppedFile> {
    let found = |paths: &Vec<String>| paths.iter().map(|path| file(app, path)).collect::<Option<Vec<_>>>();
    readings.iter().find_map(found).unwrap_or_default()
}

fn file(app: &AppContext, given: &str) -> Option<DroppedFile> {
    let path = given.strip_prefix("~/").map_or_else(|| PathBuf::from(given), |rest| app.home.join(rest));
    let metadata = path.metadata().ok()?;
    // A symlink counts by its own location; the policy judges its target when it is read.
    let real = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    let within = [&path, &real].into_iter().find_map(|path| path.strip_prefix(&app.workspace).ok());
    let outside = within.is_none() && !app.roots.iter().any(|root| real.starts_with(root));
    let named = within.filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(&path).to_str()?;
    let is_folder = metadata.is_dir();
    let path = if is_folder { format!("{}/", named.trim_end_matches('/')) } else { named.to_owned() };
    let tokens = metadata.is_file().then(|| metadata.len().div_ceil(TOKEN_BYTES));
    Some(DroppedFile { path, outside, image: metadata.is_file() && is_image(&real), tokens })
}

fn is_image(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGIN).read_to_end(&mut begin));
    read.is_ok() && media_type(&begin).is_some()
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match imagesize::image_type(bytes).ok()? {
        imagesize::ImageType::Png => Some("image/png"),
        imagesize::ImageType::Jpeg => Some("image/jpeg"),
        imagesize::ImageType::Gif => Some("image/gif"),
        imagesize::ImageType::Webp => Some("image/webp"),
        _ => None,
    }
}

/// Returns the content of the clipboard. An image is stored as an artifact that belongs to no session and that expires
/// unless it is sent with a prompt.
pub(crate) fn clipboard(app: &AppContext) -> ClipboardData {
    let (held, by) = match clipboard::read(|name| app.environment.get(name).map(str::to_owned)) {
        Ok(found) => found,
        Err(why) => return ClipboardData::Nothing { why },
    };
    match held {
        ClipboardContent::Image(bytes) => match store_image(&app.artifacts(None), &bytes, CLIPBOARD) {
            Ok(image) => ClipboardData::Image { image, by: by.to_owned() },
            Err(why) => ClipboardData::Nothing { why },
        },
        ClipboardContent::Text(text) if text.len() > MAX_TEXT => ClipboardData::Nothing {
            why: "the text in the clipboard is over 1 MB; save it to a file and mention the file with @".to_owned(),
        },
        ClipboardContent::Text(text) if !text.is_empty() => ClipboardData::Text { text },
        ClipboardContent::Text(_) | ClipboardContent::Nothing => {
            ClipboardData::Nothing { why: format!("no image in the clipboard ({by})") }
        }
    }
}

/// Stores an image under a name. Returns an error if models do not accept its format or size.
pub(crate) fn store_image(artifacts: &dyn Artifacts, bytes: &[u8], name: &str) -> Result<Image, String> {
    let size = imagesize::blob_size(bytes).ok().filter(|size| size.width > 0 && size.height > 0);
    let (Some(media_type), Some(size)) = (media_type(bytes), size) else {
        return Err("the image is not PNG, JPEG, GIF or WebP; models accept only these formats".to_owned());
    };
    let (width, height) = (size.width, size.height);
    if bytes.len() > MAX_BYTES || width.max(height) > MAX_PIXELS {
        let kilobytes = bytes.len().div_ceil(1024);
        return Err(format!(
            "the image is too large ({width}x{height}, {kilobytes} KB; models accept up to {} KB and {MAX_PIXELS} \
            pixels per side); copy a part of it, or a smaller image",
            MAX_BYTES / 1024
        ));
    }
    let keep = || {
        let new = NewArtifact { kind: ArtifactKind::Image, name: name.to_owned(), content_type: media_type.to_owned() };
        let mut writer = artifacts.begin(new)?;
        writer.write(bytes)?;
        writer.finish()
    };
    let artifact = keep().map_err(|ArtifactError { message }| format!("cannot store the image: {message}"))?;
    Ok(Image {
        uri: artifact.uri,
        media_type: media_type.to_owned(),
        width: u32::try_from(width).unwrap_or(u32::MAX),
        height: u32::try_from(height).unwrap_or(u32::MAX),
        bytes: bytes.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ArtifactStore;
    use std::os::unix::fs::PermissionsExt as _;

    /// Returns the header of a PNG image of this size.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(), size, vec![8, 2, 0, 0, 0, 0, 0, 0, 0]].concat()
    }

    #[test]
    fn images_are_stored_privately_and_unsupported_ones_are_rejected() {
        let data = tempfile::tempdir().unwrap();
        let artifacts = ArtifactStore::new(data.path(), None);
        let image = store_image(&artifacts, &png(640, 480), CLIPBOARD).unwrap();
        assert_eq!((image.width, image.height, image.media_type.as_str()), (640, 480, "image/png"));
        let path = artifacts.find(&image.uri).unwrap().path;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(store_image(&artifacts, &png(9000, 10), CLIPBOARD).unwrap_err().contains("too large"));
        assert!(store_image(&artifacts, b"II*\0nothing", CLIPBOARD).unwrap_err().contains("not PNG"));
    }

    #[test]
    fn images_are_recognized_by_their_first_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("picture.txt");
        std::fs::write(&path, png(1, 1)).unwrap();
        assert!(is_image(&path));
        std::fs::write(&path, "no picture at all, whatever its name says").unwrap();
        assert!(!is_image(&path));
    }
}
