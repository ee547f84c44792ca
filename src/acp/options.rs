//! Session options that an editor can change: approval mode, model and reasoning effort.

use crate::protocol::{Command, Effort, Mode};
use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};

pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const EFFORT: &str = "effort";
const BY_ITSELF: &str = "auto";
/// Maximum number of models to list. Any others can be selected with `/model NAME`.
const MAX_MODELS: usize = 100;

/// Approval modes, each with the name and description that the editor displays.
const MODES: [(Mode, &str, &str); 4] = [
    (Mode::Plan, "Plan", "read-only: no changes"),
    (Mode::Ask, "Ask", "follow the policy; ask if no rule applies"),
    (Mode::AutoEdit, "Auto-edit", "edit files in the workspace without asking"),
    (Mode::Auto, "Auto", "ask about high-risk actions only"),
];

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub mode: Mode,
    /// Most permissive approval mode that the user can select.
    pub laxest: Mode,
    pub model: String,
    pub effort: Option<Effort>,
    /// Reasoning efforts that the current model supports.
    pub efforts: Vec<Effort>,
    /// Models that are ready for use.
    pub models: Vec<String>,
}

impl Options {
    pub(crate) fn modes(&self) -> SessionModeState {
        let modes =
            self.offered_modes().map(|(mode, name, words)| SessionMode::new(mode.as_str(), name).description(words.to_owned()));
        SessionModeState::new(self.mode.as_str(), modes.collect())
    }

    fn offered_modes(&self) -> impl Iterator<Item = (Mode, &'static str, &'static str)> {
        let (laxest, mode) = (self.laxest, self.mode);
        MODES.into_iter().filter(move |(offered, ..)| *offered <= laxest || *offered == mode)
    }

    pub(crate) fn config(&self) -> Vec<SessionConfigOption> {
        let modes = self
            .offered_modes()
            .map(|(mode, name, words)| SessionConfigSelectOption::new(mode.as_str(), name).description(words.to_owned()));
        let mode = SessionConfigOption::select(MODE, "Mode", self.mode.as_str(), modes.collect::<Vec<_>>())
            .description("which actions need approval".to_owned())
            .category(SessionConfigOptionCategory::Mode);
        let own = (!self.models.contains(&self.model)).then_some(&self.model);
        let models = own.into_iter().chain(&self.models).take(MAX_MODELS);
        let models = models.map(|name| SessionConfigSelectOption::new(name.clone(), name.clone())).collect::<Vec<_>>();
        let model = SessionConfigOption::select(MODEL, "Model", self.model.clone(), models)
            .description("the model for the next requests".to_owned())
            .category(SessionConfigOptionCategory::Model);
        // The current value must be in the list, even if requests use the nearest effort that the model supports.
        let mut efforts: Vec<Effort> = self.efforts.iter().copied().chain(self.effort).collect();
        efforts.sort_unstable();
        efforts.dedup();
        let efforts = efforts.into_iter().map(|effort| SessionConfigSelectOption::new(effort.as_str(), effort.as_str()));
        let by_itself = SessionConfigSelectOption::new(BY_ITSELF, BY_ITSELF).description("the model's default".to_owned());
        let efforts = std::iter::once(by_itself).chain(efforts).collect::<Vec<_>>();
        let current = self.effort.map_or(BY_ITSELF, Effort::as_str);
        let effort = SessionConfigOption::select(EFFORT, "Effort", current, efforts)
            .description("reasoning effort, for models that support it".to_owned())
            .category(SessionConfigOptionCategory::ThoughtLevel);
        vec![mode, model, effort]
    }

    /// Returns the command that sets an option. If the value is invalid, returns an error that lists the valid ones.
    pub(crate) fn set(&self, id: &str, value: &SessionConfigOptionValue) -> Result<Command, String> {
        let Some(value) = value.as_value_id() else {
            return Err(format!("`{id}` must be one of the named values, not true or false"));
        };
        match id {
            MODE => self.set_mode(&value.0),
            MODEL => set_model(&value.0),
            EFFORT => set_effort(&value.0),
            other => Err(format!("unknown option `{other}`; must be `{MODE}`, `{MODEL}` or `{EFFORT}`")),
        }
    }

    pub(crate) fn set_mode(&self, name: &str) -> Result<Command, String> {
        let found = self.offered_modes().find(|(mode, ..)| mode.as_str() == name);
        let names = || self.offered_modes().map(|(mode, ..)| mode.as_str()).collect::<Vec<_>>().join(", ");
        found
            .map(|(mode, ..)| Command::SetMode { mode })
            .ok_or_else(|| format!("unknown mode `{name}`; must be one of {}", names()))
    }
}

pub(crate) fn set_model(name: &str) -> Result<Command, String> {
    match name.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(Command::SetModel { name: name.to_owned() }),
        _ => Err(format!("invalid model `{name}`; must be PROVIDER/NAME, for example `anthropic/claude-sonnet-5`")),
    }
}

pub(crate) fn set_effort(name: &str) -> Result<Command, String> {
    match (name, Effort::from_name(name)) {
        (BY_ITSELF, _) => Ok(Command::SetEffort { effort: None }),
        (_, Some(effort)) => Ok(Command::SetEffort { effort: Some(effort) }),
        _ => Err(format!("unknown effort `{name}`; must be {BY_ITSELF}, {}", Effort::names(&Effort::ALL))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modes_allowed_for_this_process_are_offered() {
        let options = |laxest| Options {
            mode: Mode::Ask,
            laxest,
            model: "a/b".to_owned(),
            effort: None,
            efforts: Vec::new(),
            models: vec!["a/c".to_owned()],
        };
        assert_eq!(options(Mode::Auto).modes().available_modes.len(), 4);
        let held = options(Mode::Ask);
        assert_eq!(held.modes().available_modes.len(), 2);
        assert!(held.set_mode("auto").unwrap_err().contains("plan, ask"));
        assert_eq!(held.set_mode("plan").unwrap(), Command::SetMode { mode: Mode::Plan });
    }

    #[test]
    fn option_values_are_validated_before_they_are_applied() {
        assert!(set_model("gpt").unwrap_err().contains("PROVIDER/NAME"));
        assert_eq!(set_effort("auto").unwrap(), Command::SetEffort { effort: None });
        assert_eq!(set_effort("none").unwrap(), Command::SetEffort { effort: Some(Effort::Off) });
        assert!(set_effort("huge").unwrap_err().contains("auto, off, minimal, low"));
    }
}
