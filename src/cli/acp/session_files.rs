//! Provides file content for diffs, and stores artifacts for prompts, in a session that belongs to an editor.

use crate::acp::FileProvider;
use crate::host::context::AppContext;
use crate::host::query::store_image;
use crate::ports::{ArtifactError, Artifacts, NewArtifact};
use crate::protocol::{ArtifactKind, SessionId};
use crate::store::ArtifactStore;
use crate::sys::path::open_file;
use futures_util::future::{BoxFuture, FutureExt as _};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Size, in bytes, above which only the changed parts of a file are shown.
const TEXT_BYTES: u64 = 128 << 10;

pub(crate) struct SessionFiles {
    roots: Vec<PathBuf>,
    artifacts: Arc<ArtifactStore>,
}

impl SessionFiles {
    pub(crate) fn new(app: &AppContext, session: &SessionId) -> Self {
        Self { roots: app.roots.clone(), artifacts: Arc::new(app.artifacts(Some(session))) }
    }
}

impl FileProvider for SessionFiles {
    fn text(&self, path: &Path) -> BoxFuture<'static, Option<String>> {
        let (path, roots) = (path.to_owned(), self.roots.clone());
        tokio::task::spawn_blocking(move || text(&path, &roots)).map(|read| read.ok().flatten()).boxed()
    }

    fn keep_image(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String, String>> {
        let artifacts = self.artifacts.clone();
        let keep = move || store_image(&*artifacts, &bytes, "image from the editor").map(|image| image.uri);
        tokio::task::spawn_blocking(keep).map(flatten).boxed()
    }

    fn keep_text(&self, name: String, text: String) -> BoxFuture<'static, Result<String, String>> {
        let artifacts = self.artifacts.clone();
        let keep = move || {
            let new = NewArtifact {
                kind: ArtifactKind::ToolOutput,
                name: format!("{name} from the editor"),
                content_type: "text/plain".to_owned(),
            };
            let kept = artifacts.begin(new).and_then(|mut writer| {
                writer.write(text.as_bytes())?;
                writer.finish()
            });
            kept.map(|artifact| artifact.uri).map_err(|ArtifactError { message }| format!("cannot store `{name}`: {message}"))
        };
        tokio::task::spawn_blocking(keep).map(flatten).boxed()
    }
}

fn flatten<T>(done: Result<Result<T, String>, tokio::task::JoinError>) -> Result<T, String> {
    done.unwrap_or_else(|error| Err(error.to_string()))
}

/// Returns the text of a regular file in the workspace. Returns `None` if the file is larger than `TEXT_BYTES`, is not
/// valid UTF-8, or contains a NUL.
fn text(path: &Path, roots: &[PathBuf]) -> Option<String> {
    let real = path.canonicalize().ok()?;
    if !roots.iter().any(|root| real.starts_with(root)) {
        return None;
    }
    let file = open_file(&real).ok()?;
    let metadata = file.metadata().ok().filter(|metadata| metadata.len() <= TEXT_BYTES)?;
    let mut text = String::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(TEXT_BYTES + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= TEXT_BYTES && !text.contains('\0')).then_some(text)
}
