//! `aye review`: reviews changes in a clean, read-only session, and prints the findings.

mod changes;
mod findings;

use super::args::{ReviewRequest, ReviewSubject};
use super::exec::{ValueTask, run_for_value};
use crate::host::console::{print_text, say_json, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::host::startup;
use crate::host::tool_runner::{Starts, ToolEnvironment, ToolRunner};
use crate::protocol::{Mode, Problem};
use crate::text::clean;
use changes::ReviewedChanges;
use findings::{Review, SCHEMA};

const PROMPT: &str = include_str!("../../../assets/review.md");

pub(crate) fn run(common: &Common, request: &ReviewRequest) -> Result<Exit, CliError> {
    // Nothing is written, and there are no approval prompts.
    let common = &Common { mode: Some(Mode::Plan), ..common.clone() };
    let place = AppContext::find(common)?;
    // Errors in the user's own files are reported before anything is created.
    place.policy(common.policy.as_deref(), None)?;
    let changes = collect(&place, common, &request.subject)?;
    if changes.diffs.is_empty() {
        warn(format!("nothing to review: {} has no changes", changes.title));
        return Ok(report(&Review::default(), &changes, request));
    }
    warn(format!("reviewing {}", changes.summary()));
    let prompt =
        PROMPT.replace("{title}", &changes.title).replace("{notes}", &changes.notes()).replace("{diff}", &changes.text());
    let task = ValueTask { prompt, schema: SCHEMA, name: "the findings", is_ephemeral: request.is_ephemeral };
    let value = match run_for_value(common, place, task)? {
        (_, Some(value)) => value,
        // 1 means findings.
        (Exit::Failed, None) => return Err(CliError::usage("the review failed").hint("see the messages above, and try again")),
        (exit, None) => return Ok(exit),
    };
    let review = Review::read(&value, &changes.diffs)
        .map_err(|why| CliError::new(Exit::Mismatch, Problem::new("the findings cannot be read").because(why)))?;
    Ok(report(&review, &changes, request))
}

fn collect(place: &AppContext, common: &Common, subject: &ReviewSubject) -> Result<ReviewedChanges, CliError> {
    let project = ProjectConfig::inspect(&place.workspace, &place.directories.config, common.trust);
    let mut place = place.clone();
    place.mode = Mode::Plan;
    let environment = ToolEnvironment::find(&place, common, &project, Starts::Programs)?;
    let runner = ToolRunner::new(environment, None);
    startup::runtime()?.block_on(ReviewedChanges::collect(&runner, subject))
}

/// Prints the findings. Returns the exit code: 1 if one is high or critical.
fn report(review: &Review, changes: &ReviewedChanges, request: &ReviewRequest) -> Exit {
    if request.json {
        say_json(&review.json(changes));
    } else {
        print_text(&clean(&review.text()));
    }
    if review.is_severe() { Exit::Failed } else { Exit::Completed }
}
