//! Construction of approval prompts from the content that each kind of call supplies.

use super::body::Body;
use super::choices::Choice;
use super::dialog_kind::DialogKind;
use super::note::Verb;
use super::prompt::CallPrompt;
use super::title;
use super::{Dialog, reasons};
use crate::protocol::Risk;
use crate::text;
use crate::tui::typeahead_guard::Confirm;

/// Source of an approval prompt's content, which each kind of call derives from its approval.
pub(super) trait CallDialog: DialogKind + Sized {
    fn call_prompt(&self) -> &CallPrompt;

    /// Returns a sentence that states the effect of the call, or the name of the call if the effect is unknown.
    fn title(&self) -> String;

    fn body(&self) -> Body;

    fn choices(&self, verb: &Verb, confirm: Confirm) -> Vec<Choice>;

    /// Returns the risk of approving the call, and whether it is critical.
    fn risk(&self) -> (Risk, bool) {
        let approval = &self.call_prompt().approval;
        (approval.risk_level, approval.critical)
    }

    /// Builds the complete dialog, including the hunks and key bindings specific to this kind of call.
    fn dialog(self) -> Dialog {
        let approval = &self.call_prompt().approval;
        let (risk, critical) = self.risk();
        let strict = critical || risk == Risk::High;
        let mut body = self.body();
        let choices = self.choices(&body.verb(), if strict { Confirm::LetterThenEnter } else { Confirm::Letter });
        let risk_words = if critical { "critical risk".to_owned() } else { format!("{} risk", risk.as_str()) };
        let reason = text::reveal_line(&format!("ask: {}", reasons(approval).join("; ")));
        let title = title::with_agent(approval, self.title());
        let facts = body.facts().unwrap_or_default();
        // The head shows the line counts at the right, so the title omits them.
        let title = body.without_line_counts(&title).to_owned();
        let title =
            if approval.amendable.edited && !title::is_unsandboxed(approval) { format!("{title}, edited by you") } else { title };
        body.set_title(&title);
        let dialog = Dialog::new(Box::new(self), title, reason, choices, body);
        let mut dialog = Dialog { facts, risk_words, risk: Some(risk), critical, ..dialog };
        dialog.show_hunks();
        dialog
    }
}
