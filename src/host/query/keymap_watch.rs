//! Reloads the key bindings during a session when their file changes.

use super::QueryHandler;
use crate::host::context::AppContext;
use crate::protocol::HostResponse;
use crate::sys::watch::Watch;
use crate::tui::KeymapFile;
use std::io::ErrorKind;

impl QueryHandler {
    /// Watches the key bindings file until the screen closes.
    pub(crate) fn follow_keys(&self) {
        let desk = self.clone();
        tokio::spawn(async move {
            let file = desk.inner.app.directories.keymap_file();
            let mut watch = match Watch::with_directories(vec![file], Vec::new()) {
                Ok(watch) => watch,
                Err(error) => return tracing::warn!(%error, "cannot watch the key bindings file"),
            };
            // The first read includes changes since the start.
            loop {
                let inner = desk.inner.clone();
                let Ok(read) = tokio::task::spawn_blocking(move || keys(&inner.app)).await else { return };
                let KeymapFile { path, text } = read;
                desk.emit(HostResponse::Keys { path, text });
                let changed = tokio::select! {
                    changed = watch.wait_for_change() => changed,
                    () = desk.events.closed() => return,
                };
                if let Err(error) = changed {
                    return tracing::warn!(%error, "stopped watching the key bindings file");
                }
            }
        });
    }
}

/// Maximum size of the key bindings file, in bytes.
const MAX_KEYS: u64 = 256 << 10;

/// Reads the user's key bindings. If the file cannot be read, this is reported but does not prevent startup.
pub(crate) fn keys(app: &AppContext) -> KeymapFile {
    let path = app.directories.keymap_file();
    let text = match std::fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Err(error.to_string())),
        Ok(known) if !known.is_file() => Some(Err("not a regular file".to_owned())),
        Ok(known) if known.len() > MAX_KEYS => Some(Err(format!("larger than {} KiB", MAX_KEYS >> 10))),
        Ok(_) => Some(std::fs::read_to_string(&path).map_err(|error| error.to_string())),
    };
    KeymapFile { path: path.display().to_string(), text }
}
