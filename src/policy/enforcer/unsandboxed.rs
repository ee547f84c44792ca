//! Approval to run a command once outside the sandbox.

use super::Enforcer;
use crate::policy::bundle::{SandboxSetting, Unsandboxed};
use crate::policy::command;
use crate::policy::paths::Sandbox;
use crate::policy::permit::Question;
use crate::protocol::{Action, Mode, Risk, VerdictKind};
use jiff::Timestamp;

const REASON: &str = "runs outside the sandbox, once: the command has all your permissions, can use the network and can change \
                      any of your files; aye's own directories are not protected";

/// Returns a request for approval to run a command line once outside the sandbox.
///
/// # Errors
/// Returns an error if the policy or the mode forbids running commands outside the sandbox, if the line is denied, or
/// if only an administrator may decide.
pub(super) fn question(policy: &Enforcer, tool_name: &str, actions: &[Action], now: Timestamp) -> Result<Question, String> {
    let [Action::Exec { command, cwd }] = actions else {
        return Err("only a command line can run outside the sandbox".to_owned());
    };
    if policy.context.sandbox == Sandbox::Absent || policy.sandbox() == SandboxSetting::Off {
        return Err("commands already run without a sandbox".to_owned());
    }
    if policy.terms().unsandboxed == Some(Unsandboxed::Deny) {
        return Err("the policy does not allow commands to run outside the sandbox (`unsandboxed = \"deny\"`)".to_owned());
    }
    let mode = policy.context.mode;
    if matches!(mode, Mode::Plan | Mode::Auto) {
        return Err(format!("no command can run outside the sandbox in mode `{}`", mode.as_str()));
    }
    policy.offers(tool_name).map_err(|denial| denial.reason)?;
    let told = policy.explain(actions, now);
    if told.verdict == VerdictKind::Deny {
        return Err(format!("{} ({})", told.reason, told.rule));
    }
    if command::is_managed(command, &policy.scene(cwd, now)) {
        return Err("a rule in the managed policy covers this command".to_owned());
    }
    let question = told.question(actions, false);
    let approve = crate::protocol::ApproveWhen::Before;
    Ok(Question { risk: Risk::High, reason: REASON.to_owned(), is_uncovered: false, approve, unsandboxed: true, ..question })
}
