//! Model changes, and new facts about the current model. The policy judges a model before it is used; a running request is still answered
//! by the model it was sent to.

use super::{Effect, InputTime, Options, Phase, TurnMachine};
use crate::ports::Record;
use crate::protocol::{Effort, EventKind, Failure, KeyText, ModelFacts};

/// User's model choices.
#[derive(Debug)]
pub(super) struct Choice {
    /// Name of the model being opened.
    opening: Option<String>,
    /// Last choice in the journal.
    pub last: Option<(String, Option<Effort>)>,
    /// Configured output limit, for any model.
    output_tokens: u64,
    /// Choices made before the first message.
    pub unsaid: Vec<Record>,
}

impl Choice {
    pub fn new(options: &Options) -> Self {
        Self { opening: None, last: None, output_tokens: options.max_output_tokens, unsaid: Vec::new() }
    }
}

impl TurnMachine {
    /// Opens a model, after saving an API key for its provider, if given.
    pub(super) fn set_model(&mut self, name: String, key: Option<KeyText>) {
        if let Err(denial) = self.policy.may_call(&name) {
            return self.refused(&denial);
        }
        self.choice.opening = Some(name.clone());
        self.out.push(Effect::OpenModel { key, name });
    }

    pub(super) fn model_opened(&mut self, opened: Result<ModelFacts, Failure>, at: InputTime) {
        let facts = match opened {
            Ok(facts) => facts,
            Err(failure) => {
                self.choice.opening = None;
                let hint = if failure.hint.is_empty() { String::new() } else { format!("; {}", failure.hint) };
                return self.notice(format!("{}: {}{hint}", self.stays(), failure.message));
            }
        };
        let is_asked = facts.name == self.options.model.name;
        match &self.choice.opening {
            Some(name) if !is_asked || *name == facts.name => {
                self.choice.opening = None;
                self.adopt(facts, at);
            }
            _ if is_asked => self.learn(facts),
            // The facts are about a model that is no longer in use.
            _ => {}
        }
    }

    /// Learns new facts about the current model from its server.
    fn learn(&mut self, facts: ModelFacts) {
        if facts != self.options.model {
            let message = sentence(&facts);
            self.options.model = facts.clone();
            self.fit_answer();
            self.another_window();
            self.emit(EventKind::ModelChanged { facts, effort: self.options.effort, message });
        }
    }

    /// Uses the model from the next request on.
    fn adopt(&mut self, facts: ModelFacts, at: InputTime) {
        // The policy may have changed since the model was requested.
        if let Err(denial) = self.policy.may_call(&facts.name) {
            return self.refused(&denial);
        }
        let mut message = sentence(&facts);
        let streams = self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Requesting(_)));
        let sums_up = self.is_compacting() && self.summary_ticket().is_none();
        if (streams || sums_up) && facts.name != self.options.model.name {
            let what = if sums_up { "summary" } else { "response" };
            message = format!("{message}; the current {what} still comes from {}", self.asked_model());
        }
        let name = facts.name.clone();
        self.options.model = facts.clone();
        self.fit_answer();
        self.another_window();
        self.keep(Record::ModelChosen { model: name.clone(), effort: self.options.effort });
        self.out.push(Effect::UseModel { name });
        self.emit(EventKind::ModelChanged { facts, effort: self.options.effort, message });
        // A user who switches the model during a retry delay does not want to wait.
        if let Some(ticket) = self.summary_ticket() {
            self.summary_woken(ticket, at);
        } else if self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Retrying { .. })) {
            match self.preflight(at) {
                None => self.request(0, at),
                Some(failure) => self.forbidden(failure),
            }
        }
    }

    pub(super) fn set_effort(&mut self, effort: Option<Effort>) {
        self.options.effort = effort;
        let facts = self.options.model.clone();
        self.keep(Record::ModelChosen { model: facts.name.clone(), effort });
        let takes_none = if facts.reasoning || effort.is_none() { "" } else { "; the model is not known to support it" };
        let message = format!("effort {}{takes_none}", effort.map_or("the model's default", Effort::as_str));
        self.emit(EventKind::ModelChanged { facts, effort, message });
    }

    /// Limits the output to what the session and the model allow.
    pub(super) fn fit_answer(&mut self) {
        let wanted = self.choice.output_tokens;
        self.options.max_output_tokens = self.options.model.max_output_tokens.map_or(wanted, |most| most.min(wanted));
    }

    /// Records earlier choices with the first prompt.
    pub(super) fn note_choices(&mut self) {
        self.pending.append(&mut self.choice.unsaid);
    }

    /// Restores a choice from the journal.
    pub(super) fn fold_choice(&mut self, model: String, effort: Option<Effort>) {
        if !self.options.effort_for_this_run {
            self.options.effort = effort;
        }
        self.choice.last = Some((model, effort));
    }

    /// Applies the command line, which overrides the session, and reports a change.
    pub(super) fn note_model_of_this_run(&mut self) {
        let (name, effort) = (self.options.model.name.clone(), self.options.effort);
        if name.is_empty() {
            return;
        }
        let (before, effort_before) = match self.choice.last.take() {
            Some((model, effort)) => (Some(model), effort),
            None => (self.options.model_before.take(), effort),
        };
        let Some(before) = before.filter(|before| *before != name || effort != effort_before) else { return };
        self.note(Record::ModelChosen { model: name.clone(), effort });
        let facts = self.options.model.clone();
        let mut message = sentence(&facts);
        if before != name {
            message = format!("{message}; was {before}");
        }
        self.emit(EventKind::ModelChanged { facts, effort, message });
    }

    fn refused(&mut self, denial: &crate::policy::permit::Denial) {
        self.notice(format!("{}: {} (rule: {})", self.stays(), denial.reason, denial.rule));
    }

    fn stays(&self) -> String {
        match self.options.model.name.as_str() {
            "" => "no model was chosen".to_owned(),
            stays => format!("still using {stays}"),
        }
    }
}

/// Formats `model anthropic/claude-sonnet-5 · 200k window · $3.00 in, $15.00 out per million tokens`.
fn sentence(facts: &ModelFacts) -> String {
    let window = match facts.context_window {
        window if window >= 1_000_000 => format!("{:.1}M", window as f64 / 1e6),
        window if window >= 1_000 => format!("{}k", window / 1_000),
        window => window.to_string(),
    };
    let price = match facts.price {
        None => "price unknown".to_owned(),
        Some(price) if price.input == 0.0 && price.output == 0.0 => "free".to_owned(),
        Some(price) => format!("${:.2} in, ${:.2} out per million tokens", price.input, price.output),
    };
    format!("model {} · {window} window · {price}", facts.name)
}
