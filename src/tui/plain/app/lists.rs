//! Lists that are printed as lines, from which the user chooses by name or number.

use super::LineApp;
use crate::protocol::{Branch, ListedSession, ListedState};
use crate::text;
use crate::tui::format::format_estimate;
use crate::tui::layers::{BranchList, SessionList};
use crate::tui::model::UiEffect;
use crate::tui::update;
use std::io::{self, Write};

/// Maximum number of sessions that are printed.
const MAX: usize = 20;

/// Prints and closes those lists that have arrived completely.
pub(super) fn print_lists<W: Write>(app: &mut LineApp<W>) -> io::Result<()> {
    let mut lines = Vec::new();
    if let Some(list) = app.model.layers.close_if(SessionList::is_whole) {
        lines.extend(sessions(&list));
    }
    if let Some(tree) = app.model.layers.close_if(|list: &BranchList| !list.branches().is_empty()) {
        tree.branches().clone_into(&mut app.branches);
        lines.push("Branches of this session; type /tree NUMBER to continue one:".to_owned());
        lines.extend(app.branches.iter().zip(1..).map(|(branch, number)| line_of_branch(branch, number)));
    }
    lines.iter().try_for_each(|line| app.paper.write_text(line))
}

/// Continues the branch that has this number in the most recently printed list (`/tree 2`).
pub(super) fn branch<W: Write>(app: &mut LineApp<W>, number: &str, now: u64, effects: &mut Vec<UiEffect>) -> io::Result<()> {
    let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    match at.and_then(|at| app.branches.get(at)).cloned() {
        Some(branch) => {
            update::go_to_branch(&mut app.model, branch, now, effects);
            Ok(())
        }
        None => app.paper.write_text(&format!("No branch {number} in the list; type /tree to show it.")),
    }
}

fn sessions(list: &SessionList) -> Vec<String> {
    let sessions = list.sessions();
    if sessions.is_empty() {
        let words = list.filter_text();
        let none = "No session in this project";
        return vec![if words.is_empty() { format!("{none} yet.") } else { format!("{none} contains: {words}") }];
    }
    let mut lines = vec!["Sessions of this project, most recent first:".to_owned()];
    lines.extend(sessions.iter().take(MAX).map(|session| line_of_session(session, list.is_current(&session.session_id))));
    if let Some(more) = sessions.len().checked_sub(MAX).filter(|more| *more > 0) {
        lines.push(format!("{more} more; type /resume WORDS to search."));
    }
    lines.push("Type /resume NAME to continue one.".to_owned());
    lines
}

/// Formats a session, such as `a1b2c3d4: Validate the name; waiting for you; 2 h; branch main; $0.42`.
fn line_of_session(session: &ListedSession, is_current: bool) -> String {
    let id: String = session.session_id.as_str().chars().take(8).collect();
    let title = session.title.as_deref().map_or_else(|| "no prompt".to_owned(), text::reveal_line);
    let state = match session.state {
        _ if is_current => Some("open here".to_owned()),
        ListedState::Waits => Some("waiting for you".to_owned()),
        ListedState::Interrupted => Some("interrupted".to_owned()),
        ListedState::Paused => Some("paused".to_owned()),
        ListedState::Elsewhere => Some("open elsewhere".to_owned()),
        ListedState::Done => None,
    };
    let branch = session.branch.as_deref().map(|branch| format!("branch {}", text::reveal_line(branch)));
    let cost = session.cost_usd.map(|cost| format_estimate(cost, session.estimated));
    let lacks = session.lacks.as_deref().map(text::reveal_line);
    let hit = session.hit.as_deref().map(|hit| format!("match: {}", text::reveal_line(hit)));
    let facts = [Some(title), state, Some(text::reveal_line(&session.age)), branch, cost, lacks, hit];
    format!("{}: {}", text::reveal_line(&id), facts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// Formats a branch, such as `2: Validate the name; forked after prompt 3; 4 prompts; 2 h`.
fn line_of_branch(branch: &Branch, number: usize) -> String {
    let title = branch.title.as_deref().map_or_else(|| "no prompt".to_owned(), text::reveal_line);
    let from = match (branch.after, branch.records.is_some()) {
        (None, false) => None,
        (None, true) => Some("undone".to_owned()),
        (Some(count), false) => Some(format!("forked after prompt {count}")),
        (Some(count), true) => Some(format!("undone after prompt {count}")),
    };
    let prompts = if branch.prompts == 1 { "1 prompt".to_owned() } else { format!("{} prompts", branch.prompts) };
    let archived = branch.archived.then(|| "archived".to_owned());
    let facts = [Some(title), from, Some(prompts), Some(text::reveal_line(&branch.age)), archived];
    format!("{number}: {}", facts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}
