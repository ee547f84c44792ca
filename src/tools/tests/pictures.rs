//! Tests of images: how they are described and stored, and their size limits.

use super::*;
use crate::ports::{ArtifactError, ArtifactWriter, Artifacts, NewArtifact, StoredArtifact};
use crate::protocol::{Artifact, ArtifactKind};
use std::sync::Mutex;

type Kept = Arc<Mutex<Vec<(Artifact, Vec<u8>)>>>;

/// An artifact store that is kept in memory.
#[derive(Default)]
struct Shelf(Kept);

struct Writer(Kept, NewArtifact, Vec<u8>);

impl Artifacts for Shelf {
    fn begin(&self, new: NewArtifact) -> Result<Box<dyn ArtifactWriter>, ArtifactError> {
        Ok(Box::new(Writer(self.0.clone(), new, Vec::new())))
    }
    fn find(&self, uri: &str) -> Result<StoredArtifact, ArtifactError> {
        Err(ArtifactError { message: format!("{uri} lies nowhere") })
    }
}

impl ArtifactWriter for Writer {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        self.2.extend_from_slice(bytes);
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<Artifact, ArtifactError> {
        let Self(shelf, new, bytes) = *self;
        let mut shelf = shelf.lock().unwrap();
        let uri = format!("artifact:{}", shelf.len());
        let NewArtifact { kind, name, content_type } = new;
        let artifact = Artifact { uri, kind, name, content_type, bytes: bytes.len() as u64 };
        shelf.push((artifact.clone(), bytes));
        Ok(artifact)
    }
}

/// Returns the header of a PNG with these dimensions, padded to a length.
fn png(width: u32, height: u32, length: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
    bytes.resize(length.max(bytes.len()), 0);
    bytes
}

fn gif(width: u16, height: u16) -> Vec<u8> {
    [b"GIF89a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), &[0, 0, 0, b';']].concat()
}

fn webp(width: u16, height: u16) -> Vec<u8> {
    let frame = [&[0x30, 1, 0, 0x9d, 1, 0x2a][..], &width.to_le_bytes(), &height.to_le_bytes(), &[0; 8]].concat();
    let chunk = [b"VP8 ".as_slice(), &(frame.len() as u32).to_le_bytes(), &frame].concat();
    [b"RIFF".as_slice(), &(chunk.len() as u32 + 4).to_le_bytes(), b"WEBP", &chunk].concat()
}

fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let frame =
        [&[0xFF, 0xC0, 0, 17, 8][..], &height.to_be_bytes(), &width.to_be_bytes(), &[3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]];
    [&[0xFF, 0xD8, 0xFF, 0xE0, 0, 16][..], b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0", &frame.concat(), &[0xFF, 0xD9]].concat()
}

fn with_shelf() -> (Bench, Kept) {
    let mut bench = Bench::new();
    let shelf = Shelf::default();
    let kept = shelf.0.clone();
    bench.settings.session.artifacts = Some(Arc::new(shelf));
    (bench, kept)
}

#[test]
fn images_are_detected_by_content_and_stored_in_full() {
    let (bench, kept) = with_shelf();
    for (bytes, kind) in [(png(640, 480, 0), "png"), (gif(640, 480), "gif"), (webp(640, 480), "webp"), (jpeg(640, 480), "jpeg")] {
        bench.write("picture.txt", &bytes);
        let result = bench.call("ReadFile", json!({"path": "picture.txt"}));
        assert_eq!(result.output_text, format!("Image, 640x480 {kind}, {} bytes", bytes.len()));
        let (artifact, content) = kept.lock().unwrap().pop().unwrap();
        assert_eq!((artifact.kind, artifact.content_type.as_str()), (ArtifactKind::Image, format!("image/{kind}").as_str()));
        assert_eq!((content, artifact.name.as_str()), (bytes.clone(), "picture.txt"));
        assert_eq!(result.artifact_uris, [artifact.uri.as_str()]);
        let image = &result.images[0];
        assert_eq!((&image.uri, &image.media_type), (&artifact.uri, &artifact.content_type));
        assert_eq!((image.width, image.height, image.bytes), (640, 480, bytes.len() as u64));
    }
}

#[test]
fn without_storage_images_are_described_as_text() {
    let bench = Bench::new();
    let bytes = png(1, 2, 0);
    bench.write("p.png", &bytes);
    let result = bench.call("ReadFile", json!({"path": "p.png"}));
    assert_eq!(result.output_text, format!("Image, 1x2 png, {} bytes", bytes.len()));
    assert!(result.images.is_empty() && result.artifact_uris.is_empty());
}

#[test]
fn images_too_large_for_models_are_not_shown_with_a_reason() {
    let (bench, kept) = with_shelf();
    const MAX: usize = 3_932_160;
    let cases = [
        (png(10, 10, MAX - 1), true),
        (png(10, 10, MAX), true),
        (png(10, 10, MAX + 1), false),
        (png(7_999, 10, 0), true),
        (png(10, 8_000, 0), true),
        (png(8_001, 10, 0), false),
    ];
    for (bytes, shown) in cases {
        bench.write("p.png", &bytes);
        let result = bench.call("ReadFile", json!({"path": "p.png"}));
        assert_eq!(result.images.len(), usize::from(shown), "{}", result.output_text);
        assert_eq!(result.output_text.contains("too large to show"), !shown);
        assert_eq!(kept.lock().unwrap().drain(..).count(), usize::from(shown));
    }
}

#[test]
fn files_that_only_look_like_images_are_read_as_their_actual_type() {
    let (bench, _) = with_shelf();
    bench.write("a.png", "no image\n");
    bench.write("b.png", b"\x89PNG\r\n\x1a\n\0\0");
    bench.write("c.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n");
    assert_eq!(bench.output("ReadFile", json!({"path": "a.png"})), "no image\n");
    assert!(bench.output("ReadFile", json!({"path": "b.png"})).starts_with("Binary file, 10 bytes\n[png, image/png;"));
    assert!(bench.output("ReadFile", json!({"path": "c.svg"})).starts_with("<svg"));
}
