//! Key bindings that are reloaded when their file changes during a session.

use super::Desk;
use crate::app::look;
use crate::protocol::LookedUp;
use crate::sys::watch::Watch;
use crate::tui::KeyFile;

impl Desk {
    /// Watches the file until the screen has closed.
    pub fn follow_keys(&self) {
        let desk = self.clone();
        tokio::spawn(async move {
            let file = desk.inner.place.directories.keymap_file();
            let mut watch = match Watch::with_directories(vec![file], Vec::new()) {
                Ok(watch) => watch,
                Err(error) => return tracing::warn!(%error, "cannot watch the key bindings file"),
            };
            // Includes changes between the start and now.
            loop {
                let inner = desk.inner.clone();
                let Ok(read) = tokio::task::spawn_blocking(move || look::keys(&inner.place)).await else { return };
                let KeyFile { path, text } = read;
                desk.tell(LookedUp::Keys { path, text });
                let changed = tokio::select! {
                    changed = watch.changed() => changed,
                    () = desk.events.closed() => return,
                };
                if let Err(error) = changed {
                    return tracing::warn!(%error, "stopped watching the key bindings file");
                }
            }
        });
    }
}
