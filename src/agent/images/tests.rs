use super::*;
use crate::ports::{ArtifactError, ArtifactWriter, NewArtifact, StoredArtifact};
use crate::protocol::{CallId, MessageId, Part, Role, TaskId, ToolResult};
use std::sync::Mutex;

/// Artifact store that contains every artifact except `artifact:gone`, and records the requests it receives.
#[derive(Default)]
struct Shelf(Mutex<Vec<String>>);

impl Artifacts for Shelf {
    fn begin(&self, _: NewArtifact) -> Result<Box<dyn ArtifactWriter>, ArtifactError> {
        Err(ArtifactError { message: "nothing is kept here".to_owned() })
    }
    fn find(&self, uri: &str) -> Result<StoredArtifact, ArtifactError> {
        Err(ArtifactError { message: format!("{uri} lies nowhere") })
    }
    fn content(&self, uri: &str, _: u64) -> Result<Vec<u8>, ArtifactError> {
        self.0.lock().unwrap().push(uri.to_owned());
        if uri == "artifact:gone" { self.find(uri).map(|_| Vec::new()) } else { Ok(uri.as_bytes().to_vec()) }
    }
}

fn shows(uris: &[&str], bytes: u64) -> Arc<Message> {
    let image = |uri: &&str| Image { uri: (*uri).to_owned(), media_type: "image/png".to_owned(), width: 1, height: 1, bytes };
    let result = ToolResult::success(CallId::new("c"), "ReadFile", "Image");
    Arc::new(Message {
        message_id: MessageId::new("m"),
        role: Role::Tool,
        content: vec![Part::ToolResult(ToolResult { images: uris.iter().map(image).collect(), ..result })],
        token_count: 1,
        task_id: TaskId::new("t"),
        step_id: None,
        timestamp: jiff::Timestamp::UNIX_EPOCH,
    })
}

#[tokio::test]
async fn images_are_fetched_once_and_only_if_they_are_sent() {
    let shelf = Arc::new(Shelf::default());
    let mut images = ImageCache::new(Some(shelf.clone()));
    let messages = [shows(&["artifact:1"], 10), shows(&["artifact:2", "artifact:1"], 10)];
    let first = images.load(&messages[..1]).await;
    assert_eq!(first["artifact:1"].as_ref(), BASE64_STANDARD.encode("artifact:1"));
    assert_eq!(images.load(&messages).await.len(), 2);
    assert!(Arc::ptr_eq(&images.load(&messages).await, &images.load(&messages).await));
    assert_eq!(*shelf.0.lock().unwrap(), ["artifact:1", "artifact:2"]);
    assert!(images.load(&[]).await.is_empty());
}

#[tokio::test]
async fn missing_images_are_omitted() {
    let mut images = ImageCache::new(Some(Arc::new(Shelf::default())));
    let sent = images.load(&[shows(&["artifact:gone", "artifact:1"], 10)]).await;
    assert_eq!(sent.keys().collect::<Vec<_>>(), ["artifact:1"]);
    assert!(ImageCache::new(None).load(&[shows(&["artifact:1"], 10)]).await.is_empty());
}

#[test]
fn the_newest_images_are_sent_and_the_oldest_are_dropped_in_batches() {
    let uris: Vec<String> = (0..45).map(|index| format!("artifact:{index}")).collect();
    for (count, sent, oldest) in [(19, 19, 0), (20, 20, 0), (21, 11, 10), (30, 20, 10), (31, 11, 20), (45, 15, 30)] {
        let messages: Vec<_> = uris[..count].iter().map(|uri| shows(&[uri], 10)).collect();
        let chosen = newest_images(&messages);
        assert_eq!((chosen.len(), chosen[sent - 1].uri.clone()), (sent, uris[oldest].clone()), "{count}");
    }
    let third = MAX_IMAGES_BYTES / 4;
    for (bytes, sent) in [(third - 1, 3), (third, 3), (third + 3, 2)] {
        let messages = [shows(&["artifact:1", "artifact:2"], bytes), shows(&["artifact:3"], bytes)];
        assert_eq!(newest_images(&messages).len(), sent, "{bytes}");
    }
}
