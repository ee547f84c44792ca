//! Changes of an enforcer in use: its layers as a whole, and its mode.

use super::Enforcer;
use crate::policy::layer::Scope;
use crate::protocol::{Mode, PolicyLayer};
use jiff::Timestamp;
use std::time::Duration;

impl Enforcer {
    /// Replaces the layers by those of `new`. The user's choices for this run stay: the mode and the session grants.
    pub fn replace(&mut self, new: Self) {
        let mode = self.context.mode;
        let session = std::mem::take(&mut self.source).into_iter().filter(|layer| layer.scope == Scope::Session);
        self.source = new.source;
        self.source.extend(session);
        self.context = new.context;
        self.context.mode = mode;
        self.limits = new.limits;
        self.other_shell = new.other_shell;
        self.approve.config = new.approve.config;
        self.settle();
    }

    pub fn mode(&self) -> Mode {
        self.context.mode
    }

    pub fn set_mode(&mut self, mode: Mode) {
        self.context.mode = mode;
    }

    /// Returns the layers in force, the strongest first.
    pub fn layers(&self) -> Vec<PolicyLayer> {
        let told = |layer: &super::Ready| PolicyLayer {
            scope: layer.scope.as_str().to_owned(),
            bundle_version: layer.bundle.version.clone(),
            expires_at: layer.bundle.expires_at,
            max_input_tokens: layer.bundle.llm.max_input_tokens,
            file: layer.file.as_ref().map(|file| file.display().to_string()),
        };
        self.layers.iter().map(told).collect()
    }

    /// Returns the time that an approval waits for an answer: the shortest of all layers.
    pub fn approval_timeout(&self) -> Option<Duration> {
        let seconds = self.layers.iter().filter_map(|layer| layer.bundle.approval_timeout_seconds).min()?;
        Some(Duration::from_secs(seconds.max(1)))
    }

    /// Returns why everything is denied, once a bundle has expired.
    pub fn expired(&self, now: Timestamp) -> Option<String> {
        self.layers.iter().find_map(|layer| {
            let end = layer.bundle.expires_at.filter(|end| *end <= now)?;
            let name = layer.bundle.version.as_deref().unwrap_or(layer.scope.as_str());
            let end = end.strftime("%Y-%m-%d %H:%M UTC");
            let file = layer.file.as_ref().map(|file| format!(" (aye watches {})", file.display())).unwrap_or_default();
            Some(format!("policy `{name}` expired on {end}; nothing runs until you renew it{file}"))
        })
    }
}
