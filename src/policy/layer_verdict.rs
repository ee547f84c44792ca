//! Verdict of one layer before modes and grants, and the combination of several layers' verdicts.

use super::bundle::Approve;
use super::layer::{CompiledLayer, Scope};
use super::permit::Grant;
use crate::protocol::{CommandPart, Mode, Risk, VerdictKind};

/// Verdict of one layer on one action.
#[derive(Debug, Clone)]
pub(crate) struct LayerVerdict {
    pub verdict: VerdictKind,
    pub rule: String,
    pub reason: String,
    /// Approval rule that has the title of the approval.
    pub approval_rule: Option<String>,
    /// Whether no mode and no grant can change the verdict.
    pub locked: bool,
    /// Whether a rule or a grant allowed the program by name.
    pub by_name: bool,
    /// Whether no rule matched, so that the capability requires approval by default.
    pub is_uncovered: bool,
    /// Point in time of the approval for an ask verdict; `Effects` for other verdicts.
    pub approve: Approve,
    /// For an ask verdict: whether the user's rules let the command run in a copy of the workspace without a prompt.
    /// True for an allow verdict.
    pub in_a_copy: bool,
    /// Whether only the mode, and no rule or grant, allows it.
    pub by_mode: bool,
}

impl LayerVerdict {
    pub(crate) fn new(verdict: VerdictKind, rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            rule: rule.into(),
            reason: reason.into(),
            approval_rule: None,
            locked: false,
            by_name: false,
            is_uncovered: false,
            approve: if verdict == VerdictKind::Ask { Approve::Command } else { Approve::Effects },
            in_a_copy: verdict == VerdictKind::Allow,
            by_mode: false,
        }
    }

    pub(crate) fn deny(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Deny, rule, reason)
    }

    pub(crate) fn ask(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Ask, rule, reason)
    }

    pub(crate) fn allow(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Allow, rule, reason)
    }

    /// Lets the command run in a copy of the workspace before its approval, as a rule requires.
    pub(crate) fn with_copy(mut self) -> Self {
        (self.approve, self.in_a_copy) = (Approve::Effects, true);
        self
    }

    pub(crate) fn not_grantable(mut self) -> Self {
        self.locked = true;
        self
    }

    /// Returns the verdict of a mode that allows calls for which the rules require approval. The terms for a run in a
    /// copy do not change.
    pub(crate) fn allowed_by_mode(self, mode: Mode) -> Self {
        let Self { by_name, approve, in_a_copy, reason, .. } = self;
        let rule = format!("{} mode", mode.as_str());
        Self { by_name, approve, in_a_copy, by_mode: true, ..Self::allow(rule, reason) }
    }

    /// Marks the verdict as based on the program's name.
    pub(crate) fn named_by_program(mut self) -> Self {
        self.by_name = true;
        self
    }

    pub(crate) fn is_denial(&self) -> bool {
        self.verdict == VerdictKind::Deny
    }

    pub(crate) fn is_question(&self) -> bool {
        self.verdict == VerdictKind::Ask
    }

    /// Locks a question of a managed layer. Permission by a managed layer leaves the questions of other layers unlocked.
    pub(crate) fn lock_if_managed(&mut self, scope: Scope) {
        self.locked |= scope.is_managed() && self.is_question();
    }

    /// Returns the stricter of two verdicts; of equal ones, the locked one, then the first.
    pub(crate) fn stricter(self, other: Self) -> Self {
        let by_name = self.by_name || other.by_name;
        // A rule that asks before a command runs takes precedence, even if another rule asks too.
        let approve = self.approve.min(other.approve);
        let in_a_copy = self.in_a_copy && other.in_a_copy;
        let by_mode = self.by_mode || other.by_mode;
        let stricter = if (other.verdict, other.locked) > (self.verdict, self.locked) { other } else { self };
        Self { by_name, approve, in_a_copy, by_mode, ..stricter }
    }
}

/// Returns the verdict of all layers on a capability that at least one layer must grant.
pub(crate) fn combine_layers(
    capability: &str,
    layers: &[CompiledLayer],
    says: impl Fn(&CompiledLayer) -> Option<LayerVerdict>,
) -> LayerVerdict {
    let of = |granting: bool| layers.iter().filter(move |layer| layer.scope.grants() == granting).filter_map(&says);
    let granted = of(true).reduce(LayerVerdict::stricter).unwrap_or_else(|| not_granted_verdict("built-in", capability));
    of(false).fold(granted, LayerVerdict::stricter)
}

/// Returns the verdict of a layer on a capability that it does not list.
pub(crate) fn unlisted_verdict(capability: &str, layer: &CompiledLayer) -> Option<LayerVerdict> {
    layer.refuses(capability).then(|| not_granted_verdict(layer.scope.rule(1), capability))
}

fn not_granted_verdict(rule: impl Into<String>, capability: &str) -> LayerVerdict {
    LayerVerdict::deny(rule, format!("the capability `{capability}` is not granted"))
}

/// Returns the reason of a rule, or `otherwise` if it has none.
pub(crate) fn reason(given: &str, otherwise: &str) -> String {
    if given.is_empty() { otherwise } else { given }.to_owned()
}

/// Returns the next higher risk.
pub(crate) fn next_higher(risk: Risk) -> Risk {
    match risk {
        Risk::Low => Risk::Medium,
        Risk::Medium | Risk::High => Risk::High,
    }
}

/// Result for one action before modes and grants.
#[derive(Debug, Clone)]
pub(crate) struct ActionFinding {
    pub decided: LayerVerdict,
    pub risk: Risk,
    pub critical: bool,
    /// Whether the action changes nothing, so that plan mode allows it.
    pub reads_only: bool,
    pub remember: Option<Grant>,
    pub parts: Vec<CommandPart>,
}
