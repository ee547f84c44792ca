//! "Always allow": saves rules in memory or in policy files, and removes them again.

use super::io::{Effect, InputTime};
use super::rule_files::{RuleFileResult, RuleGrant};
use super::turn_context::TurnContext;
use crate::policy::Enforcer;
use crate::ports::{Durability, Plan, Record};
use crate::protocol::{
    Action, EventKind, GrantChoice, GrantOptions, GrantRule, GrantScope, ListedGrant, NoticeKind, ProposedPlan, RequestedList,
};
use crate::session::Mandate;

/// Rules that the user saved during this run.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Saved rules, oldest first.
    saved: Vec<RuleGrant>,
    /// Number of pending changes to the policy files.
    changes: usize,
    /// Actions covered by the running task's approved plan.
    mandate: Mandate,
}

/// Input to the grants.
#[derive(Debug)]
pub(super) enum GrantInput {
    /// The user removed the most recently saved rule.
    Undone,
    /// The user's policy files were changed or read.
    FilesChanged(RuleFileResult),
    /// The task has ended, and its mandate with it.
    TaskEnded,
}

impl Grants {
    pub(crate) fn handle(&mut self, input: GrantInput, cx: &mut TurnContext) {
        match input {
            GrantInput::Undone => self.undo(cx),
            GrantInput::FilesChanged(outcome) => self.on_outcome(outcome, cx),
            GrantInput::TaskEnded => self.drop_mandate(cx),
        }
    }

    /// Returns whether a change to the policy files is pending.
    pub(crate) fn is_saving(&self) -> bool {
        self.changes > 0
    }

    /// Saves the chosen rule. The approved call runs once, whether or not saving succeeds.
    pub(crate) fn remember(
        &mut self,
        always: &GrantOptions,
        (remember, directory): (GrantChoice, Option<std::path::PathBuf>),
        TurnContext { policy, out, .. }: &mut TurnContext,
    ) {
        let Some(offer) = always.offers.get(remember.offer) else {
            return out.notice("no rule was saved: it was not offered; allowed this once");
        };
        if let Some(why) = offer.refuses(remember.scope) {
            return out.notice(format!("no rule was saved: {why}; allowed this once"));
        }
        let rules = offer.rules_for(remember.scope).to_vec();
        let grant = RuleGrant { rules, scope: remember.scope, names: Vec::new(), directory };
        match (remember.scope, &offer.memory_only) {
            (GrantScope::Session, _) => {
                if let Err(error) = policy.keep(&grant.rules, grant.directory.clone()) {
                    return out.notice(format!("no rule was saved: {error}; allowed this once"));
                }
                let words = describe_rules(&grant.rules);
                self.saved.push(grant);
                out.special_notice(NoticeKind::RuleUntilQuit, format!("allowed until aye quits: {words}"));
            }
            (GrantScope::Project | GrantScope::Everywhere, Some(why)) => {
                out.notice(format!("no rule was saved: {why}; allowed this once"));
            }
            (GrantScope::Project | GrantScope::Everywhere, None) => {
                // The journal must contain the decision before the policy file changes.
                out.commit(Durability::Process);
                self.changes += 1;
                out.effect(Effect::Remember { grant, until: remember.until });
            }
        }
    }

    /// Removes the most recently saved rule.
    fn undo(&mut self, TurnContext { policy, out, .. }: &mut TurnContext) {
        match self.saved.pop() {
            None => out.notice("no rule was saved in this session; `aye policy grants list` shows rules saved in other sessions"),
            Some(grant) if grant.scope == GrantScope::Session => {
                policy.ungrant(&grant.rules, grant.directory.as_deref());
                out.notice(format!("no longer allowed: {}", describe_rules(&grant.rules)));
            }
            Some(grant) => {
                self.changes += 1;
                out.effect(Effect::Forget(grant));
            }
        }
    }

    /// Starts the mandate of a plan, given the actions that it allows and those that still require approval.
    pub(crate) fn begin_mandate(
        &mut self,
        shown: &ProposedPlan,
        (actions, asks): (Vec<Action>, Vec<Action>),
        cx: &mut TurnContext,
        at: InputTime,
    ) {
        let digest = Some(shown.digest.clone());
        cx.out.record(Record::MandateSet { digest, actions: actions.clone(), asks: asks.clone() });
        cx.policy.set_mandate(&actions, at.now);
        self.mandate = Mandate { actions, asks };
        let allows = shown.allows();
        if !allows.is_empty() {
            cx.out.notice(format!("allowed until the task ends: {}", allows.join("; ")));
        }
    }

    /// Restores the mandate of a task that continues.
    pub(crate) fn restore_mandate(&mut self, mandate: Mandate, cx: &mut TurnContext, at: InputTime) {
        cx.policy.set_mandate(&mandate.actions, at.now);
        self.mandate = mandate;
    }

    /// Ends the mandate while its task continues.
    pub(crate) fn end_mandate(&mut self, cx: &mut TurnContext) {
        if self.mandate != Mandate::default() {
            cx.out.record(Record::MandateSet { digest: None, actions: Vec::new(), asks: Vec::new() });
            cx.out.commit(Durability::Process);
        }
        self.drop_mandate(cx);
    }

    /// Drops the mandate of a task whose end is already in the journal.
    fn drop_mandate(&mut self, cx: &mut TurnContext) {
        self.mandate = Mandate::default();
        cx.policy.end_mandate();
    }

    /// Returns a note for the approval of a call that the approved plan does not allow. Returns `None` if there is no
    /// such plan or the call proposes a plan itself.
    pub(crate) fn outside_mandate(&self, plan: &Plan, policy: &Enforcer) -> Option<&'static str> {
        if !policy.has_mandate() || plan.task_plan.is_some() {
            return None;
        }
        let named = |action: &Action| self.mandate.asks.iter().chain(&self.mandate.actions).any(|named| is_same(named, action));
        let is_named = !plan.actions.is_empty() && plan.actions.iter().all(named);
        Some(if is_named { "the plan lists this call, but it needs its own approval" } else { "not in the plan" })
    }

    /// Handles the result of reading or changing the policy files.
    fn on_outcome(&mut self, outcome: RuleFileResult, TurnContext { policy, out, .. }: &mut TurnContext) {
        if matches!(outcome, RuleFileResult::Saved(..) | RuleFileResult::Removed(..)) {
            self.changes = self.changes.saturating_sub(1);
        }
        match outcome {
            RuleFileResult::Saved(grant, Ok(saved)) => {
                let place = match grant.scope {
                    GrantScope::Session => "until aye quits",
                    GrantScope::Project => "in this project",
                    GrantScope::Everywhere => "in all projects",
                };
                let allowed = describe_rules(&grant.rules);
                let grant = RuleGrant { names: saved.names, ..grant };
                policy.replace_user_layer(saved.layer, grant.scope);
                out.record(Record::RuleSaved { rules: grant.rules.clone(), scope: grant.scope, names: grant.names.clone() });
                out.commit(Durability::Process);
                self.saved.push(grant);
                let message = format!("always allowed {place}: {allowed}");
                out.special_notice(NoticeKind::RuleSaved, message);
            }
            RuleFileResult::Saved(_, Err(why)) => {
                out.notice(format!("the rule was not saved, so aye asks again next time: {why}"));
            }
            RuleFileResult::Removed(grant, Ok(saved)) => {
                policy.replace_user_layer(saved.layer, grant.scope);
                out.record(Record::RuleRemoved { rules: grant.rules.clone(), scope: grant.scope });
                out.commit(Durability::Process);
                out.notice(format!("rule removed: {}", grant.names.join(", ")));
            }
            RuleFileResult::Removed(grant, Err(why)) => {
                let names = grant.names.join(", ");
                self.saved.push(grant);
                out.notice(format!("{names} was not removed: {why}"));
            }
            // The turn machine handles this result, because it requires the current time.
            RuleFileResult::Recent { .. } => {}
            RuleFileResult::Listed(Err(why)) => out.notice(format!("the saved rules cannot be read: {why}")),
            RuleFileResult::Listed(Ok(saved)) => {
                let unsaved = |name: &str, rule| ListedGrant { name: name.to_owned(), rule, times: String::new() };
                let session = self.saved.iter().filter(|grant| grant.scope == GrantScope::Session);
                let mut grants: Vec<ListedGrant> =
                    session.map(|grant| unsaved("until aye quits", join_rules(&grant.rules))).collect();
                let planned = self.mandate.actions.iter().map(|action| unsaved("until the task ends", in_words(action)));
                grants.extend(planned);
                grants.extend(saved);
                out.event(EventKind::ListShown(RequestedList::Grants { grants }));
            }
        }
    }
}

/// Returns whether an action named by a plan is the same as a call's action. The current state of the path is
/// ignored.
fn is_same(named: &Action, action: &Action) -> bool {
    match (named, action) {
        (Action::Write { target: named }, Action::Write { target }) => named.real == target.real,
        (Action::Exec { command: named, .. }, Action::Exec { command, .. }) => named == command,
        _ => named == action,
    }
}

fn in_words(action: &Action) -> String {
    match action {
        Action::Write { target } => format!("write {}", target.real.display()),
        Action::Exec { command, .. } => format!("run {command}"),
        Action::Fetch { url, .. } => format!("read from {url}"),
        other => other.capability().to_owned(),
    }
}

/// Describes the calls that the rules allow, on one line.
fn describe_rules(rules: &[GrantRule]) -> String {
    rules.iter().map(GrantRule::describe).collect::<Vec<_>>().join("; ")
}

fn join_rules(rules: &[GrantRule]) -> String {
    rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
