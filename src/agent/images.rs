//! Images in a thread. Messages contain only image URIs; the content is loaded just before a request.

use super::limits::{IMAGES_DROPPED_AT_ONCE, MAX_IMAGES, MAX_IMAGES_BYTES};
use crate::ports::{Artifacts, Images};
use crate::protocol::{Image, Message};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) struct ImageCache {
    artifacts: Option<Arc<dyn Artifacts>>,
    /// Images included in the last request.
    sent: Images,
}

impl ImageCache {
    pub(crate) fn new(artifacts: Option<Arc<dyn Artifacts>>) -> Self {
        Self { artifacts, sent: Images::default() }
    }

    /// Loads the images in these messages for a request. Missing images are skipped.
    pub(crate) async fn load(&mut self, messages: &[Arc<Message>]) -> Images {
        let chosen = newest_images(messages);
        let Some(artifacts) = self.artifacts.clone().filter(|_| !chosen.is_empty()) else {
            self.sent = Images::default();
            return self.sent.clone();
        };
        let sent = self.sent.clone();
        if chosen.len() == sent.len() && chosen.iter().all(|image| sent.contains_key(&image.uri)) {
            return sent;
        }
        let wanted: Vec<(String, u64)> = chosen.into_iter().map(|image| (image.uri.clone(), image.bytes)).collect();
        let fetched = tokio::task::spawn_blocking(move || {
            let fetch = |(uri, bytes): (String, u64)| {
                let content = sent.get(&uri).cloned().or_else(|| fetch(artifacts.as_ref(), &uri, bytes))?;
                Some((uri, content))
            };
            wanted.into_iter().filter_map(fetch).collect::<HashMap<_, _>>()
        });
        self.sent = Arc::new(fetched.await.unwrap_or_default());
        self.sent.clone()
    }
}

fn fetch(artifacts: &dyn Artifacts, uri: &str, bytes: u64) -> Option<Arc<str>> {
    match artifacts.content(uri, bytes) {
        Ok(content) => Some(BASE64_STANDARD.encode(content).into()),
        Err(error) => {
            tracing::warn!(%error, uri, "cannot read an image");
            None
        }
    }
}

/// Returns the newest distinct images, up to the limits for a request.
fn newest_images(messages: &[Arc<Message>]) -> Vec<&Image> {
    let mut known = HashSet::new();
    let images = messages.iter().rev().flat_map(|message| message.images().rev());
    let mut newest: Vec<&Image> = images.filter(|image| known.insert(image.uri.as_str())).collect();
    let over = newest.len().saturating_sub(MAX_IMAGES).div_ceil(IMAGES_DROPPED_AT_ONCE) * IMAGES_DROPPED_AT_ONCE;
    newest.truncate(newest.len() - over);
    let mut total = 0;
    newest
        .into_iter()
        .take_while(|image| {
            total += image.bytes.div_ceil(3) * 4;
            total <= MAX_IMAGES_BYTES
        })
        .collect()
}

#[cfg(test)]
mod tests;
