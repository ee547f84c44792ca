//! `aye review`: reviews changes in a clean, read-only session, and prints the findings.

use super::args::ReviewRequest;
use super::exec::{ValueTask, run_for_value};
use crate::host::console::{print_json, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::host::review;
use crate::host::startup;
use crate::host::tool_runner::{Starts, ToolEnvironment, ToolRunner};
use crate::protocol::{Mode, Review, ReviewSubject, ReviewedChanges};
use crate::text::clean;
use serde_json::{Value, json};

/// Version of the JSON output format.
const VERSION: u32 = 1;

pub(crate) fn run(common: &Common, request: &ReviewRequest) -> Result<Exit, CliError> {
    // The session cannot write, so there are no approval prompts.
    let common = &Common { mode: Some(Mode::Plan), ..common.clone() };
    let app = AppContext::find(common)?;
    // Errors in the user's own files are reported before anything is created.
    app.policy(common.policy.as_deref(), None)?;
    let changes = collect(&app, common, &request.subject)?;
    if changes.diffs.is_empty() {
        warn(changes.no_changes_note());
        return Ok(report(&Review { changes, ..Review::default() }, request));
    }
    warn(format!("reviewing {}", changes.summary()));
    let task = ValueTask {
        prompt: review::prompt(&changes),
        schema: review::SCHEMA,
        name: review::SCHEMA_NAME,
        is_ephemeral: request.is_ephemeral,
    };
    let value = match run_for_value(common, app, task)? {
        (_, Some(value)) => value,
        // Exit code 1 is reserved for severe findings.
        (Exit::Failed, None) => return Err(CliError::usage("the review failed").hint("see the messages above, and try again")),
        (exit, None) => return Ok(exit),
    };
    let review = review::read(&value, changes).map_err(|problem| CliError::new(Exit::Mismatch, problem))?;
    Ok(report(&review, request))
}

fn collect(app: &AppContext, common: &Common, subject: &ReviewSubject) -> Result<ReviewedChanges, CliError> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    let mut app = app.clone();
    app.mode = Mode::Plan;
    let environment = ToolEnvironment::find(&app, common, &project, Starts::Programs)?;
    let runner = ToolRunner::new(environment, None);
    startup::runtime()?.block_on(review::collect(&runner, subject))
}

/// Prints the findings, and returns the exit code, which is 1 if any finding has high or critical severity.
fn report(review: &Review, request: &ReviewRequest) -> Exit {
    if request.json {
        print_json(&as_json(review));
    } else {
        print_text(&clean(&review.text()));
    }
    if review.is_severe() { Exit::Failed } else { Exit::Completed }
}

fn as_json(review: &Review) -> Value {
    let Review { changes, summary, findings, dropped } = review;
    json!({
        "version": VERSION,
        "reviewed": changes.title,
        "files": changes.diffs.len(),
        "leftOut": changes.left_out,
        "summary": summary,
        "findings": findings,
        "dropped": dropped,
    })
}
