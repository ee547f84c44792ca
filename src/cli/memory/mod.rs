//! `aye memory`: lists, shows, applies, edits and drops proposals for instruction files.

pub(crate) mod args;

use crate::host::console::{self, can_ask, print_json, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::memory::{AppliedProposal, Memory};
use crate::protocol::{MemoryProposal, MemorySource, Problem};
use crate::store::Store;
use crate::text::{clean, clean_line, reveal, reveal_line, truncate};
use args::MemorySub;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;

/// Maximum width of an instruction in the list, in terminal cells.
const TEXT_CELLS: usize = 90;

pub(crate) fn run(app: &AppContext, action: MemorySub) -> Result<Exit, CliError> {
    let memory = Memory::for_place(app)?;
    match action {
        MemorySub::List { json } => return list(app, &memory, json),
        MemorySub::Show { id, json: true } => print_json(&memory.show(&id)?),
        MemorySub::Show { id, json: false } => print_text(&describe(&memory.show(&id)?)),
        MemorySub::Apply { id, yes, digest, json } => {
            let applied = apply(&memory, &id, yes, digest)?;
            if json {
                let AppliedProposal { id, text, file, outcome } = &applied;
                print_json(&json!({"id": id, "text": text, "file": file, "outcome": outcome.as_str()}));
            } else {
                print_text(&format!("{}\n", clean_line(&applied.describe())));
                if applied.is_written() {
                    print_text(&format!("undo: aye memory undo {}\n", applied.id));
                }
            }
        }
        MemorySub::Edit { id, text, target } => print_text(&describe(&memory.edit(&id, text.as_deref(), target)?)),
        MemorySub::Drop { id, json } => {
            let text = memory.drop_proposal(&id)?;
            if json {
                print_json(&json!({"id": id, "text": text, "outcome": "dropped"}));
            } else {
                print_text(&format!("dropped {id}: {}\n", reveal_line(&text)));
            }
        }
        MemorySub::Add { text, target, json } => {
            let proposal = memory.add(&text, target)?;
            if json {
                print_json(&proposal);
            } else {
                print_text(&format!("{}\napply it: aye memory apply {}\n", describe(&proposal), proposal.id));
            }
        }
        MemorySub::Undo { id } => {
            let undone = memory.undo(&id)?;
            print_text(&format!("undid {} in {}\n", undone.id, clean_line(&undone.file)));
        }
    }
    Ok(Exit::Completed)
}

fn list(app: &AppContext, memory: &Memory, json: bool) -> Result<Exit, CliError> {
    // Proposals are listed even if the store is damaged.
    if let Err(error) = Store::open(&app.directories.data).map_err(CliError::from).and_then(|store| memory.search_prompts(&store))
    {
        warn(error.into_problem());
    }
    let proposals = memory.list()?;
    if json {
        print_json(&proposals);
        return Ok(Exit::Completed);
    }
    let mut text = String::new();
    for proposal in &proposals {
        let line = truncate(&reveal_line(&proposal.text), TEXT_CELLS).into_owned();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}  {:8}  {line}", proposal.id, proposal.target.as_str());
        let _ = writeln!(text, "          {}", origin(proposal));
    }
    if proposals.is_empty() {
        text.push_str("no proposals\n");
        if !app.settings.memory {
            text.push_str("aye collects no proposals, because `[memory] enabled` is false\n");
        }
    } else {
        text.push_str("show one with its diff: aye memory show ID\n");
    }
    print_text(&text);
    Ok(Exit::Completed)
}

/// Describes where a proposal comes from, on one line.
fn origin(proposal: &MemoryProposal) -> String {
    let count = proposal.said.len();
    match proposal.source {
        MemorySource::Repeated => format!("{}, {count} times", proposal.source.describe()),
        MemorySource::Model | MemorySource::User => proposal.source.describe().to_owned(),
    }
}

fn describe(proposal: &MemoryProposal) -> String {
    let mut text = format!("{}  {}\n", proposal.id, reveal_line(&proposal.text));
    let _ = writeln!(text, "file: {} ({})", reveal_line(&proposal.file), proposal.target.as_str());
    let _ = writeln!(text, "{}", origin(proposal));
    if let Some(reason) = &proposal.reason {
        let _ = writeln!(text, "reason: {}", reveal_line(reason));
    }
    for quote in &proposal.said {
        let _ = writeln!(text, "  {}  {}", quote.time.strftime("%Y-%m-%d %H:%M"), reveal_line(&quote.text));
    }
    match &proposal.problem {
        Some(problem) => {
            let _ = writeln!(text, "\ncannot be applied: {}", reveal_line(problem));
        }
        None => {
            let _ = write!(text, "\n{}", reveal(&proposal.diff));
        }
    }
    text
}

/// Applies a proposal. Prompts the user unless the diff is approved in advance, by `yes` or by its digest.
fn apply(memory: &Memory, id: &str, yes: bool, digest: Option<String>) -> Result<AppliedProposal, CliError> {
    if let Some(digest) = digest {
        return memory.apply(id, &digest);
    }
    if let Some(settled) = memory.settle(id)? {
        return Ok(settled);
    }
    let proposal = memory.show(id)?;
    let text = describe(&proposal);
    if yes {
        let _ = write!(std::io::stderr(), "{}", clean(&text));
    } else {
        confirm(&text)?;
    }
    memory.apply(&proposal.id, &proposal.digest)
}

fn confirm(text: &str) -> Result<(), CliError> {
    let refused = || Problem::new("nothing was applied");
    if !can_ask() {
        print_text(text);
        let problem = refused().because("cannot prompt without a terminal");
        return Err(CliError::usage(problem.hint("pass `--yes` to approve the diff")));
    }
    if console::confirm(&format!("{text}\n"), "Apply this proposal?") { Ok(()) } else { Err(CliError::usage(refused())) }
}
