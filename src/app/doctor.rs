//! `aye doctor`: what holds commands on this system, what is missing, and how to get it.

use super::cli::Common;
use super::exit::Exit;
use super::place::Place;
use super::project::Brought;
use super::standing::Standing;
use super::trouble::Trouble;
use crate::policy::Sandbox;
use serde::Serialize;

/// What is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    /// `preview`, `guarded`, `landlock only`, `bare`: what the system can do.
    tier: &'static str,
    /// Under the policy in force.
    sandbox: String,
    command: String,
    /// With what a rule's allow comes to.
    allowed_commands: &'static str,
    missing: Vec<String>,
    /// What of the policy no sandbox keeps.
    not_kept: Vec<String>,
}

pub fn run(place: &Place, common: &Common, json: bool) -> Result<Exit, Trouble> {
    let project = Brought::look(place, common.trust);
    let policy = place.policy(common.policy.as_deref(), Some(&project))?;
    let standing = Standing::find(place, !project.waits());
    let enforcer = place.enforcer(&policy, standing.sandbox(), place.mode);
    let holding = standing.holding(&enforcer);
    let off = enforcer.sandbox() == crate::policy::SandboxSetting::Off;
    let found = Found {
        tier: standing.tier().as_str(),
        sandbox: holding.status(),
        command: standing.words(&holding),
        allowed_commands: if off || standing.sandbox() == Sandbox::Present { "run" } else { "ask" },
        missing: standing.missing().to_vec(),
        not_kept: holding.unheld(),
    };
    if json {
        super::say_json(&found);
    } else {
        super::say(&found.as_text());
    }
    Ok(Exit::Completed)
}

impl Found {
    fn as_text(&self) -> String {
        let mut rows = vec![
            format!("this system   {}", self.tier),
            format!("in force      {}", self.sandbox),
            format!("a command     {}", self.command),
            format!(
                "by rule       a command that a rule allows {}",
                if self.allowed_commands == "run" { "runs" } else { "asks" }
            ),
        ];
        for (head, list) in [("missing", &self.missing), ("not kept", &self.not_kept)] {
            if list.is_empty() {
                rows.push(format!("{head:14}nothing"));
            }
            let heads = std::iter::once(head).chain(std::iter::repeat(""));
            rows.extend(list.iter().zip(heads).map(|(what, head)| format!("{head:14}{what}")));
        }
        crate::text::clean(&(rows.join("\n") + "\n")).into_owned()
    }
}
