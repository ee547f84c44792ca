//! Option changes that the editor requested and that have not taken effect yet.

use super::EditorSession;
use crate::acp::options::Options;
use crate::acp::rpc::{Reply, invalid_params, reply};
use crate::protocol::{Command, EventKind};
use agent_client_protocol::v1::schema::{
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum time for a change to take effect, which may involve querying a provider.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX: usize = 16;

struct PendingSetting {
    reply: Reply,
    /// Whether the editor requested the change as an option change. Otherwise, it requested a mode change.
    is_option: bool,
    /// Whether the approval mode is being changed.
    mode: bool,
    until: Instant,
}

#[derive(Default)]
pub(crate) struct PendingSettings {
    waiting: VecDeque<PendingSetting>,
}

impl PendingSettings {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|waiting| waiting.until)
    }

    /// Responds to the pending change that an event completes. Returns whether the response has already told the editor
    /// the new options.
    pub(crate) fn complete(&mut self, kind: &EventKind, options: &Options) -> bool {
        let mode = matches!(kind, EventKind::ModeChanged { .. });
        let Some(at) = self.waiting.iter().position(|waiting| waiting.mode == mode) else { return false };
        let Some(waiting) = self.waiting.remove(at) else { return false };
        if waiting.is_option {
            reply(waiting.reply, Ok(SetSessionConfigOptionResponse::new(options.config())));
        } else {
            reply(waiting.reply, Ok(SetSessionModeResponse::new()));
        }
        waiting.is_option
    }

    /// Responds to the oldest pending change with an error, because the session rejected it.
    pub(crate) fn reject(&mut self, message: &str) {
        if let Some(waiting) = self.waiting.pop_front() {
            reply::<SetSessionModeResponse>(waiting.reply, Err(invalid_params(message)));
        }
    }

    pub(crate) fn give_up(&mut self) {
        self.reject("the setting did not take effect in time; try again");
    }
}

impl EditorSession {
    pub(super) async fn set_mode(&mut self, request: &SetSessionModeRequest, to: Reply) {
        let command = self.options.set_mode(&request.mode_id.0);
        self.set(command, to, false).await;
    }

    pub(super) async fn set_option(&mut self, request: &SetSessionConfigOptionRequest, to: Reply) {
        let command = self.options.set(&request.config_id.0, &request.value);
        self.set(command, to, true).await;
    }

    async fn set(&mut self, command: Result<Command, String>, to: Reply, is_option: bool) {
        let refused = |to, message: String| reply::<SetSessionModeResponse>(to, Err(invalid_params(message)));
        match command {
            Err(message) => refused(to, message),
            Ok(_) if self.setting.waiting.len() >= MAX => {
                refused(to, "too many pending settings; wait for the responses".to_owned());
            }
            Ok(command) => {
                let mode = matches!(command, Command::SetMode { .. });
                let until = Instant::now() + TIMEOUT;
                self.setting.waiting.push_back(PendingSetting { reply: to, is_option, mode, until });
                self.send(command).await;
            }
        }
    }
}
