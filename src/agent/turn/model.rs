//! Model changes, and new facts about the current model. The policy judges a model before it is used. A request in
//! progress is still completed by the model that it was sent to.

use super::io::Effect;
use super::options::AgentOptions;
use super::turn_context::TurnContext;
use crate::policy::permit::Denial;
use crate::ports::Record;
use crate::protocol::{Effort, EventKind, Failure, ModelFacts, SecretString};

/// The user's model choices.
#[derive(Debug)]
pub(super) struct ModelChoices {
    /// Name of the model being opened.
    opening: Option<String>,
    /// Most recent choice recorded in the journal.
    last: Option<(String, Option<Effort>)>,
    /// Configured output limit, which applies to all models.
    output_tokens: u64,
    /// Model and effort for which the user was last told that a different effort is used.
    replaced: Option<(String, Effort)>,
}

/// Change that results from opening a model.
pub(super) enum ModelUpdate {
    None,
    /// New facts about the current model are in effect.
    Learned,
    /// The model that the user chose is ready to be used.
    Chosen(ModelFacts),
}

impl ModelChoices {
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self { opening: None, last: None, output_tokens: options.max_output_tokens, replaced: None }
    }

    /// Opens a model. If an API key for its provider is given, the key is saved first.
    pub(crate) fn open(&mut self, name: String, key: Option<SecretString>, cx: &mut TurnContext) {
        // A name without a provider is completed when the model is opened; `adopt` then judges the full name.
        if name.contains('/')
            && let Err(denial) = cx.policy.check_model(&name)
        {
            return report_refusal(&denial, cx);
        }
        self.opening = Some(name.clone());
        cx.out.effect(Effect::OpenModel { key, name });
    }

    pub(crate) fn on_opened(&mut self, opened: Result<ModelFacts, Failure>, cx: &mut TurnContext) -> ModelUpdate {
        let facts = match opened {
            Ok(facts) => facts,
            Err(failure) => {
                self.opening = None;
                cx.out.notice(failure.problem().with_location(unchanged_note(cx)).one_line());
                return ModelUpdate::None;
            }
        };
        let is_asked = facts.name == cx.options.model.name;
        match &self.opening {
            Some(name) if !is_asked || *name == facts.name || is_bare_name(name, &facts.name) => {
                self.opening = None;
                ModelUpdate::Chosen(facts)
            }
            _ if is_asked && facts != cx.options.model => {
                let message = describe_model(&facts);
                cx.options.model = facts.clone();
                self.limit_output(cx);
                cx.out.event(EventKind::ModelChanged { facts, effort: cx.options.effort, message });
                ModelUpdate::Learned
            }
            // The facts are unchanged or concern a model that is no longer in use.
            _ => ModelUpdate::None,
        }
    }

    /// Uses a model from the next request on. `current` describes the response that another model is still writing,
    /// with that model's name. Returns whether the policy allows the new model.
    pub(crate) fn adopt(&mut self, facts: ModelFacts, current: Option<(&str, String)>, cx: &mut TurnContext) -> bool {
        // The policy may have changed since the model was requested.
        if let Err(denial) = cx.policy.check_model(&facts.name) {
            report_refusal(&denial, cx);
            return false;
        }
        let mut message = describe_model(&facts);
        let effort = cx.options.effort.filter(|_| facts.name != cx.options.model.name);
        if let Some(words) = effort.and_then(|effort| self.replacement(&facts, effort)) {
            message = format!("{message}; {words}");
        }
        if let Some((what, model)) = current.filter(|_| facts.name != cx.options.model.name) {
            message = format!("{message}; the current {what} still comes from {model}");
        }
        let name = facts.name.clone();
        cx.options.model = facts.clone();
        self.limit_output(cx);
        cx.record_setting(Record::ModelChosen { model: name.clone(), effort: cx.options.effort });
        cx.out.effect(Effect::UseModel { name });
        cx.out.event(EventKind::ModelChanged { facts, effort: cx.options.effort, message });
        true
    }

    /// Switches to a model without recording it as the user's choice.
    pub(crate) fn switch(&mut self, facts: ModelFacts, why: &str, cx: &mut TurnContext) {
        let message = format!("{}; {why}", describe_model(&facts));
        let name = facts.name.clone();
        cx.options.model = facts.clone();
        self.limit_output(cx);
        cx.out.effect(Effect::UseModel { name });
        cx.out.event(EventKind::ModelChanged { facts, effort: cx.options.effort, message });
    }

    /// Sets the effort for later requests.
    pub(crate) fn set_effort(&mut self, effort: Option<Effort>, cx: &mut TurnContext) {
        cx.options.effort = effort;
        let facts = cx.options.model.clone();
        cx.record_setting(Record::ModelChosen { model: facts.name.clone(), effort });
        let message = effort.and_then(|effort| self.replacement(&facts, effort));
        let message = message.unwrap_or_else(|| format!("effort {}", effort.map_or("the model's default", Effort::as_str)));
        cx.out.event(EventKind::ModelChanged { facts, effort, message });
    }

    /// Before a request, reports that the model does not support the configured effort. Reported once per model and
    /// effort.
    pub(crate) fn report_effort(&mut self, cx: &mut TurnContext) {
        let Some(effort) = cx.options.effort else { return };
        if self.replaced.as_ref().is_some_and(|(model, told)| *model == cx.options.model.name && *told == effort) {
            return;
        }
        // A default from the settings is not meant to apply to every model.
        let is_chosen = cx.options.effort_for_this_run || cx.options.model.reasoning;
        if let Some(words) = self.replacement(&cx.options.model, effort).filter(|_| is_chosen) {
            cx.out.notice(words);
        }
    }

    /// Returns the message that the model does not support an effort, or `None` if it does. The message counts as
    /// reported.
    fn replacement(&mut self, facts: &ModelFacts, effort: Effort) -> Option<String> {
        self.replaced = None;
        let (name, wanted) = (&facts.name, effort.as_str());
        let words = match facts.nearest_effort(effort) {
            Some(nearest) if nearest == effort => return None,
            Some(nearest) => format!("{name} does not support effort {wanted}; using {}, the nearest level", nearest.as_str()),
            None if effort == Effort::Off => return None,
            None => format!("effort {wanted}; the model is not known to support it"),
        };
        self.replaced = Some((name.clone(), effort));
        Some(words)
    }

    /// Limits the number of output tokens to the lower of the session's and the model's limit.
    pub(crate) fn limit_output(&self, cx: &mut TurnContext) {
        let wanted = self.output_tokens;
        cx.options.max_output_tokens = cx.options.model.max_output_tokens.map_or(wanted, |most| most.min(wanted));
    }

    /// Restores a choice from the journal.
    pub(crate) fn restore(&mut self, model: String, effort: Option<Effort>, cx: &mut TurnContext) {
        if !cx.options.effort_for_this_run {
            cx.options.effort = effort;
        }
        self.last = Some((model, effort));
    }

    /// Uses the model from the command line, which overrides the session's model, and reports the change if there is
    /// one.
    pub(crate) fn report_run_model(&mut self, cx: &mut TurnContext) {
        let (name, effort) = (cx.options.model.name.clone(), cx.options.effort);
        if name.is_empty() {
            return;
        }
        let (before, effort_before) = match self.last.take() {
            Some((model, effort)) => (Some(model), effort),
            None => (cx.options.model_before.take(), effort),
        };
        let Some(before) = before.filter(|before| *before != name || effort != effort_before) else { return };
        cx.out.record(Record::ModelChosen { model: name.clone(), effort });
        let facts = cx.options.model.clone();
        let mut message = describe_model(&facts);
        if before != name {
            message = format!("{message}; was {before}");
        }
        cx.out.event(EventKind::ModelChanged { facts, effort, message });
    }
}

/// Returns whether `name` is the name of the model `full_name` without its provider.
fn is_bare_name(name: &str, full_name: &str) -> bool {
    !name.contains('/') && full_name.split_once('/').is_some_and(|(_, bare)| bare.eq_ignore_ascii_case(name))
}

fn report_refusal(denial: &Denial, cx: &mut TurnContext) {
    cx.out.notice(format!("{}: {} (rule: {})", unchanged_note(cx), denial.reason, denial.rule));
}

fn unchanged_note(cx: &TurnContext) -> String {
    match cx.model_name() {
        "" => "no model was chosen".to_owned(),
        stays => format!("still using {stays}"),
    }
}

/// Describes a model, such as `model anthropic/claude-sonnet-5 · 200k window · $3.00 in, $15.00 out per million
/// tokens`.
pub(super) fn describe_model(facts: &ModelFacts) -> String {
    let window = match facts.context_window {
        window if window >= 1_000_000 => format!("{:.1}M", window as f64 / 1e6),
        window if window >= 1_000 => format!("{}k", window / 1_000),
        window => window.to_string(),
    };
    let assumed = if facts.price_is_assumed { ", an assumed price" } else { "" };
    let price = match facts.price {
        None => "price unknown".to_owned(),
        Some(price) if price.input == 0.0 && price.output == 0.0 => format!("free{assumed}"),
        Some(price) => format!("${:.2} in, ${:.2} out per million tokens{assumed}", price.input, price.output),
    };
    let tools = if facts.tools == Some(false) { " · calls no tools" } else { "" };
    format!("model {} · {window} window · {price}{tools}", facts.name)
}
