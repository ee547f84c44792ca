//! Stores text that arrives in chunks, redacted and up to a size limit.

use super::{KEPT_FROM_BYTES, Kept};
use crate::policy::redact::{Redactor, Stream};
use crate::ports::{ARTIFACT_BYTES, ArtifactError, ArtifactWriter, Artifacts, NewArtifact};
use crate::protocol::{cut_position_before, size};
use crate::sys::process::whole_start;
use crate::tools::settings::ToolSettings;
use std::sync::Arc;

/// Number of bytes reserved for the note that text was truncated.
const NOTE_BYTES: u64 = 256;

/// Writes text to an artifact if it is long. Memory use does not grow with the length of the text.
pub(in crate::tools) struct ArtifactSpool {
    artifacts: Arc<dyn Artifacts>,
    new: NewArtifact,
    /// Redacts secrets even if they span several chunks.
    stream: Stream,
    /// The whole text while it is still short, and later only the bytes of an incomplete character.
    held: Vec<u8>,
    total: u64,
    state: State,
}

enum State {
    Short,
    Writing {
        writer: Box<dyn ArtifactWriter>,
        room: u64,
    },
    /// The size limit has been reached, and any further text is dropped.
    Full {
        writer: Box<dyn ArtifactWriter>,
    },
    Failed(String),
}

impl ArtifactSpool {
    pub(in crate::tools) fn new(artifacts: Arc<dyn Artifacts>, redactor: Arc<Redactor>, new: NewArtifact) -> Self {
        Self { artifacts, new, stream: Stream::new(redactor), held: Vec::new(), total: 0, state: State::Short }
    }

    /// Returns whether adding a chunk of `more` bytes causes a write to disk.
    pub(in crate::tools) fn is_slow(&self, more: usize) -> bool {
        match self.state {
            State::Short => self.held.len() + more > KEPT_FROM_BYTES,
            State::Writing { .. } => true,
            State::Full { .. } | State::Failed(_) => false,
        }
    }

    pub(in crate::tools) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        match self.state {
            State::Short => {
                self.held.extend_from_slice(bytes);
                if self.held.len() > KEPT_FROM_BYTES {
                    self.state = match self.artifacts.begin(self.new.clone()) {
                        Ok(writer) => State::Writing { writer, room: ARTIFACT_BYTES - NOTE_BYTES },
                        Err(error) => State::Failed(error.message),
                    };
                    self.write_buffered();
                }
            }
            State::Writing { .. } => {
                self.held.extend_from_slice(bytes);
                self.write_buffered();
            }
            State::Full { .. } | State::Failed(_) => {}
        }
    }

    /// Writes the buffered bytes, except those of an incomplete character at the end.
    fn write_buffered(&mut self) {
        let whole = whole_start(&self.held).len();
        let text = String::from_utf8_lossy(&self.held[..whole]).into_owned();
        self.held.drain(..whole);
        let shown = self.stream.push(&text);
        self.write(&shown);
    }

    fn write(&mut self, text: &str) {
        let State::Writing { writer, room } = &mut self.state else { return };
        let fits = cut_position_before(text, usize::try_from(*room).unwrap_or(usize::MAX));
        let written = writer.write(&text.as_bytes()[..fits]);
        *room -= fits as u64;
        self.state = match (written, std::mem::replace(&mut self.state, State::Short)) {
            (Err(ArtifactError { message }), _) => State::Failed(message),
            (Ok(()), State::Writing { writer, .. }) if fits < text.len() => State::Full { writer },
            (Ok(()), state) => state,
        };
    }

    /// Completes the artifact. Returns `None` if the text was too short to be stored.
    pub(in crate::tools) fn finish(mut self) -> Option<Kept> {
        if matches!(self.state, State::Writing { .. }) {
            let rest = String::from_utf8_lossy(&self.held).into_owned();
            let shown = self.stream.push(&rest) + &self.stream.finish();
            self.write(&shown);
        }
        let finished = |writer: Box<dyn ArtifactWriter>| writer.finish().map_err(|error| error.message);
        match self.state {
            State::Short => None,
            State::Writing { writer, .. } => Some(finished(writer)),
            State::Full { mut writer } => {
                let note =
                    format!("\n[... cut here: of {} bytes, at most {} are stored ...]\n", self.total, size(ARTIFACT_BYTES));
                Some(writer.write(note.as_bytes()).map_err(|error| error.message).and_then(|()| finished(writer)))
            }
            State::Failed(reason) => Some(Err(reason)),
        }
    }
}

/// Stores a complete text if it is long. Returns `None` if it is not, or if artifacts are not stored.
pub(in crate::tools) fn keep_text(settings: &ToolSettings, new: NewArtifact, text: &str) -> Option<Kept> {
    if text.len() <= KEPT_FROM_BYTES {
        return None;
    }
    let mut keeper = ArtifactSpool::new(Arc::clone(settings.session.artifacts.as_ref()?), Arc::clone(&settings.redactor), new);
    // In pieces, to limit the memory that redaction needs.
    text.as_bytes().chunks(64 * 1024).for_each(|piece| keeper.push(piece));
    keeper.finish()
}
