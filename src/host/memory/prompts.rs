//! Detects, without a model, instructions that a user repeats in the stored prompts of a workspace.

use super::Memory;
use super::document;
use super::inbox::{AddOutcome, DetectedInstruction, InboxContent, OpenProposal, id};
use super::instruction::instructions;
use super::similarity::WordWeights;
use super::statement;
use super::target;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::protocol::{MemoryQuote, MemorySource, MemoryTarget, Message, SessionId};
use crate::session::{Change, SessionState};
use crate::store::{SessionSummary, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// Maximum number of sessions searched, starting with the most recent.
const MAX_SESSIONS: usize = 20;
/// Number of records read at once, and maximum number of such reads per search.
const PART_RECORDS: usize = 200;
const MAX_PARTS: usize = 40;
/// Maximum age of the prompts considered in the first search.
const FIRST_SEARCH: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Overlap of a search with the previous one, needed because a prompt is stored slightly later than its timestamp.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);
/// Directories below the workspace that contain slash commands, and limits on the number, size and depth of their
/// files.
const COMMAND_DIRECTORIES: [&str; 2] = [".aye/commands", ".claude/commands"];
const MAX_COMMANDS: usize = 200;
const COMMAND_BYTES: u64 = 64 << 10;
const COMMAND_DEPTH: usize = 3;

/// Searches the prompts sent since the last search, and proposes instructions that occur in two tasks.
pub(super) fn search(memory: &Memory, store: &Store) -> Result<(), CliError> {
    let app = &memory.app;
    let started = Timestamp::now();
    let searched = memory.file.read()?.searched;
    let since = match searched {
        Some(searched) => searched.checked_sub(OVERLAP),
        None => started.checked_sub(FIRST_SEARCH),
    }
    .unwrap_or(Timestamp::UNIX_EPOCH);
    let sessions = store.sessions(Some(&app.workspace_id()))?;
    let known: HashSet<SessionId> = sessions.iter().map(|session| session.session_id.clone()).collect();
    // A model wrote the prompts of an agent, and aye those of a command.
    let is_of_user = |session: &SessionSummary| !session.of_agent && !session.of_command;
    let mut due: Vec<_> = sessions.into_iter().filter(|session| is_of_user(session) && session.updated >= since).collect();
    due.sort_by_key(|session| std::cmp::Reverse(session.updated));
    let (mut found, mut parts) = (Vec::new(), MAX_PARTS);
    for session in due.into_iter().take(MAX_SESSIONS) {
        collect(store, &session.session_id, since, &mut parts, &mut found)?;
    }
    if found.is_empty() && searched.is_some() {
        return Ok(());
    }
    let templates = templates(app);
    found.retain(|said| {
        let meaning = WordWeights::from_text(&said.quote.text);
        statement::checked(&said.quote.text, &memory.redactor).is_ok() && !templates.iter().any(|known| known.is_same(&meaning))
    });
    found.sort_by_key(|said| said.quote.time);
    let in_files: Vec<String> =
        MemoryTarget::ALL.into_iter().filter_map(|target| target::file(app, target).ok()?.before).collect();
    memory.file.update(|inbox| {
        // Forget the prompts of deleted sessions.
        inbox.said.retain(|said| known.contains(&said.session));
        for said in found {
            note(inbox, said, &in_files);
        }
        inbox.searched = Some(started);
        Ok(())
    })
}

/// Adds the instructions found in a session's prompts since the given time.
fn collect(
    store: &Store,
    session: &SessionId,
    since: Timestamp,
    parts: &mut usize,
    found: &mut Vec<DetectedInstruction>,
) -> Result<(), StoreError> {
    let mut before = None;
    while *parts > 0 {
        *parts -= 1;
        let part = store.page(session, before, PART_RECORDS)?;
        let (mut state, mut here, mut is_done) = (SessionState::default(), Vec::new(), false);
        for record in &part.records {
            match state.apply(record).change {
                Change::TaskStarted { prompt: message, .. } | Change::Steered { message } => {
                    is_done |= message.timestamp < since;
                    if message.timestamp >= since {
                        read(session, message, &mut here);
                    }
                }
                // Earlier records are the conversation of another user.
                Change::Imported { .. } => {
                    here.clear();
                    is_done = true;
                }
                _ => {}
            }
        }
        found.append(&mut here);
        before = part.before;
        if before.is_none() || is_done {
            break;
        }
    }
    Ok(())
}

fn read(session: &SessionId, message: &Message, found: &mut Vec<DetectedInstruction>) {
    let typed = message.typed_text();
    let all = instructions(typed);
    let prompt = blake3::hash(typed.trim().as_bytes()).to_hex().to_string();
    // A prompt with nothing but an instruction may be repeated on purpose; a longer prompt that occurs again was sent
    // again.
    let is_alone = all.len() == 1 && all.iter().all(|only| only.chars().count() + 12 >= typed.trim().chars().count());
    found.extend(all.into_iter().map(|text| DetectedInstruction {
        session: session.clone(),
        message: message.message_id.clone(),
        task: message.task_id.to_string(),
        prompt: prompt.clone(),
        alone: is_alone,
        quote: MemoryQuote { time: message.timestamp, text },
    }));
}

/// Stores an instruction, and proposes it if it also occurs in another task.
fn note(inbox: &mut InboxContent, said: DetectedInstruction, in_files: &[String]) {
    // A fork contains the prompts of the session that it was forked from.
    let is_known = |known: &DetectedInstruction| {
        let is_same_message = known.session == said.session && known.message == said.message;
        known.quote.text == said.quote.text && (is_same_message || known.quote.time == said.quote.time)
    };
    if inbox.said.iter().any(is_known) {
        return;
    }
    let meaning = WordWeights::from_text(&said.quote.text);
    let is_repeated = |known: &&DetectedInstruction| {
        // Tasks are numbered within a session.
        let is_other_task = known.session != said.session || known.task != said.task;
        let is_other = is_other_task && (known.prompt != said.prompt || known.alone);
        is_other && WordWeights::from_text(&known.quote.text).is_same(&meaning)
    };
    let mut quotes: Vec<MemoryQuote> = inbox.said.iter().filter(is_repeated).map(|known| known.quote.clone()).collect();
    let quote = said.quote.clone();
    inbox.said.push(said);
    if quotes.is_empty() || in_files.iter().any(|file| document::says(file, &quote.text)) {
        return;
    }
    let (text, target) = (quote.text.clone(), MemoryTarget::Personal);
    quotes.push(quote);
    let proposal = OpenProposal {
        id: id(&text, target),
        text,
        target,
        source: MemorySource::Repeated,
        reason: None,
        said: quotes,
        created: Timestamp::now(),
        applying: None,
    };
    if inbox.add(proposal) == AddOutcome::Full {
        tracing::debug!("the memory inbox is full");
    }
}

/// Returns the instructions contained in slash commands. Their text becomes part of prompts although the user did not
/// type it.
fn templates(app: &AppContext) -> Vec<WordWeights> {
    let mut texts = Vec::new();
    visit(&app.directories.config.join("commands"), 0, &mut texts);
    for directory in COMMAND_DIRECTORIES {
        visit(&app.workspace.join(directory), 0, &mut texts);
    }
    texts.iter().flat_map(|text| instructions(text)).map(|instruction| WordWeights::from_text(&instruction)).collect()
}

fn visit(directory: &Path, depth: usize, texts: &mut Vec<String>) {
    let Ok(entries) = crate::sys::path::entries(directory) else { return };
    for entry in entries.take(MAX_COMMANDS).filter_map(Result::ok) {
        let path = directory.join(entry.file_name());
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() && depth < COMMAND_DEPTH {
            visit(&path, depth + 1, texts);
        }
        let is_command = metadata.is_file() && path.extension().is_some_and(|extension| extension == "md");
        if is_command && texts.len() < MAX_COMMANDS {
            let mut text = Vec::new();
            let read = crate::sys::path::open_file(&path).and_then(|file| file.take(COMMAND_BYTES).read_to_end(&mut text));
            if read.is_ok() {
                texts.push(String::from_utf8_lossy(&text).into_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::MessageId;

    fn said(number: i64, task: &str, prompt: &str, alone: bool, text: &str) -> DetectedInstruction {
        DetectedInstruction {
            session: SessionId::new("s"),
            message: MessageId::new(format!("m{number}")),
            task: task.to_owned(),
            prompt: prompt.to_owned(),
            alone,
            quote: MemoryQuote { time: Timestamp::from_second(number).unwrap(), text: text.to_owned() },
        }
    }

    fn proposals(all: Vec<DetectedInstruction>, in_files: &[String]) -> Vec<(String, usize)> {
        let mut inbox = InboxContent::default();
        for said in all {
            note(&mut inbox, said, in_files);
        }
        inbox.proposals.into_iter().map(|proposal| (proposal.text, proposal.said.len())).collect()
    }

    #[test]
    fn an_instruction_repeated_in_two_tasks_is_proposed_once_with_quotes() {
        let one = said(1, "a", "p", false, "Use nextest");
        let other = said(2, "b", "q", false, "Please use nextest, not cargo test");
        let third = said(3, "c", "r", false, "Use nextest");
        assert_eq!(proposals(vec![one.clone()], &[]), []);
        let text = || "Please use nextest, not cargo test".to_owned();
        assert_eq!(proposals(vec![one.clone(), other.clone()], &[]), [(text(), 2)]);
        assert_eq!(proposals(vec![one.clone(), other.clone(), third], &[]), [(text(), 3)]);
        let there = ["# Rules\n\n- Use nextest\n".to_owned()];
        assert_eq!(proposals(vec![one, other], &there), []);
    }

    #[test]
    fn repetitions_in_a_task_resent_prompts_and_forks_count_once() {
        let one = || said(1, "a", "p", false, "Use nextest");
        assert_eq!(proposals(vec![one(), said(2, "a", "q", false, "Use nextest")], &[]), [], "steered in the same task");
        assert_eq!(proposals(vec![one(), said(2, "b", "p", false, "Use nextest")], &[]), [], "the same prompt again");
        assert_eq!(proposals(vec![one(), one()], &[]), [], "the same message in a fork");
        let alone = |number, task| said(number, task, "p", true, "Use nextest");
        assert_eq!(proposals(vec![alone(1, "a"), alone(2, "b")], &[]).len(), 1, "the instruction is the whole prompt");
    }
}
