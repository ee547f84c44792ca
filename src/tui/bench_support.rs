//! UI that runs without a terminal, used by `benches/screen.rs`.

use super::display::Display;
use super::interface::UiOptions;
use super::model::UiModel;
use super::theme::ColourDepth;
use super::update::{Msg, update};
use super::view;
use crate::protocol::{CallArguments, CallId, Event, EventKind, SessionId, TaskId, ToolStatus, WorkspaceId};
use ratatui::layout::Size;
use std::io;

pub struct BenchScreen {
    model: UiModel,
    display: Display<io::Sink>,
    now: u64,
}

impl BenchScreen {
    pub fn new(width: u16, height: u16) -> Self {
        let mut options = UiOptions::default_options();
        options.terminal.colours = ColourDepth::True;
        let size = Size::new(width, height);
        Self { model: UiModel::new(options, None, size), display: Display::new(io::sink(), size), now: 0 }
    }

    fn send_event(&mut self, kind: EventKind) {
        self.now += 1;
        let event = Event {
            workspace_id: WorkspaceId::new("w"),
            session_id: SessionId::new("00000000"),
            task_id: Some(TaskId::new("t")),
            step_id: None,
            timestamp: jiff::Timestamp::UNIX_EPOCH,
            kind,
        };
        update(&mut self.model, Msg::Event(Box::new(event)), self.now);
    }

    /// Appends a chunk of text to the response.
    pub fn text(&mut self, chunk: &str) {
        self.send_event(EventKind::TextChunk { text: chunk.to_owned() });
    }

    /// Adds a command that has finished with the given output.
    pub fn command(&mut self, number: usize, output: &str) {
        let tool_call_id = CallId::new(number.to_string());
        self.send_event(EventKind::ToolRequested {
            tool_call_id: tool_call_id.clone(),
            tool_name: "RunCommand".to_owned(),
            capability: None,
            arguments: CallArguments::parse(""),
            summary: format!("$ cargo test number-{number}"),
        });
        let (tool_call_id, rule) = (tool_call_id.clone(), "user:12".to_owned());
        self.send_event(EventKind::ToolStarted {
            tool_call_id: tool_call_id.clone(),
            rule,
            summary: None,
            effects: None,
            note: None,
        });
        self.send_event(EventKind::ToolCompleted {
            tool_call_id,
            tool_name: "RunCommand".to_owned(),
            status: ToolStatus::Succeeded,
            latency_ms: 12,
            output_text: output.to_owned(),
            error: None,
            proposal: None,
            redactions: Vec::new(),
            artifact_uris: Vec::new(),
            ended: None,
        });
    }

    pub fn unfold_all(&mut self) {
        self.model.transcript.fold_everything();
    }

    pub fn to_start(&mut self) {
        self.model.transcript.scroll_to_start();
    }

    pub fn to_end(&mut self) {
        self.model.transcript.follow_end();
    }

    pub fn scroll(&mut self, rows: isize) {
        let (transcript, look) = self.model.transcript_look(self.now);
        if rows < 0 {
            transcript.scroll_up(rows.unsigned_abs(), look);
        } else {
            transcript.scroll_down(rows.unsigned_abs(), look);
        }
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        let size = Size::new(width, height);
        self.display.resize(size);
        update(&mut self.model, Msg::Resize(size), self.now);
    }

    /// Returns the number of matches for `words` in the whole transcript.
    pub fn find(&self, words: &str) -> usize {
        let query = super::transcript::FindQuery::new(words);
        query.map_or(0, |query| {
            super::transcript::find_all(&self.model.transcript, &query, &super::transcript::SearchMatches::default(), 0).count()
        })
    }

    pub fn frame(&mut self) -> io::Result<()> {
        let (model, now) = (&mut self.model, self.now);
        self.display.draw(|buffer| view::draw(model, buffer, now)).map(drop)
    }
}
