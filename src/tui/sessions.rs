//! List of sessions to resume, with a preview of the highlighted one and the actions on it.

use super::format::format_estimate;
use super::glyphs::Glyphs;
use super::picker::{Column, Picker, PickerResult, Row};
use crate::protocol::{ListedSession, ListedState, SessionId, SessionPreview};
use crate::text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const COLUMNS: &[Column] = &[
    Column { head: "session", is_number: false, rank: 0 },
    Column { head: "age", is_number: true, rank: 1 },
    Column { head: "branch", is_number: false, rank: 2 },
    Column { head: "cost", is_number: true, rank: 3 },
];
/// Maximum width of a branch name, in cells.
const BRANCH: usize = 16;
/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 80;

/// Sort order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    LastUsed,
    State,
    Created,
    Cost,
}

impl Order {
    const ALL: [Self; 4] = [Self::LastUsed, Self::State, Self::Created, Self::Cost];

    fn label(self) -> &'static str {
        match self {
            Self::LastUsed => "last used",
            Self::State => "state",
            Self::Created => "created",
            Self::Cost => "cost",
        }
    }
}

/// Result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Nothing,
    Closed,
    Other,
    Open(SessionId),
    /// The filter or the scope has changed; the list must be requested again.
    Ask,
    Rename(SessionId, String),
    Delete(SessionId, String),
    Fork(SessionId),
    /// Show the transcript of the session.
    Transcript(SessionId),
    /// Archive or unarchive the session.
    Archive(SessionId, bool),
    Refused(String),
}

pub(crate) struct Sessions {
    pub picker: Picker,
    sessions: Vec<ListedSession>,
    /// Whether sessions of all projects are shown.
    pub all: bool,
    /// Whether archived sessions are shown.
    pub archived: bool,
    order: Order,
    counts: (u64, u64),
    looks_on: bool,
    /// Preview of the last messages of a session.
    pub look: Option<SessionPreview>,
    /// Whether other code changed the filter, so that the list must be requested again.
    pub is_stale: bool,
    /// Session whose preview was requested last.
    pub requested_preview: Option<SessionId>,
    /// Whether the preview covers the list, because the screen has no room for both.
    pub shows_look: bool,
    /// Session that is being renamed, and the title typed so far.
    renaming: Option<(SessionId, String)>,
    /// Session that is open here.
    current: Option<SessionId>,
    waits_sign: &'static str,
    signs: Glyphs,
}

impl Sessions {
    pub(crate) fn new(current: Option<SessionId>, signs: &Glyphs) -> Self {
        let mut sessions = Self {
            picker: Picker::new("Resume", COLUMNS).with_external_filter(),
            sessions: Vec::new(),
            all: false,
            archived: false,
            order: Order::LastUsed,
            counts: (0, 0),
            looks_on: true,
            look: None,
            is_stale: false,
            requested_preview: None,
            shows_look: false,
            renaming: None,
            current,
            waits_sign: signs.waits,
            signs: *signs,
        };
        sessions.update_hint();
        sessions
    }

    /// Sets the sessions that match the filter, unless the filter has changed since.
    pub(crate) fn set_sessions(
        &mut self,
        words: &str,
        which: (bool, bool),
        sessions: Vec<ListedSession>,
        counts: (u64, u64),
        looks_on: bool,
    ) {
        if words != self.picker.filter() || which != (self.all, self.archived) {
            return;
        }
        self.sessions = sessions;
        self.counts = counts;
        self.looks_on = looks_on;
        self.refresh();
    }

    /// Returns whether the list is complete, with no search still running.
    pub(crate) fn is_whole(&self) -> bool {
        !self.looks_on
    }

    pub(crate) fn sessions(&self) -> &[ListedSession] {
        &self.sessions
    }

    /// Returns the filter.
    pub(crate) fn filter_text(&self) -> String {
        text::reveal_line(self.picker.filter())
    }

    fn refresh(&mut self) {
        match self.order {
            Order::LastUsed => self.sessions.sort_by_key(|session| std::cmp::Reverse(session.updated)),
            Order::State => self.sessions.sort_by_key(|session| (session.state, std::cmp::Reverse(session.updated))),
            Order::Created => self.sessions.sort_by_key(|session| std::cmp::Reverse(session.created)),
            Order::Cost => self.sessions.sort_by(|one, two| two.cost_usd.unwrap_or(0.0).total_cmp(&one.cost_usd.unwrap_or(0.0))),
        }
        let rows = self.sessions.iter().map(|session| self.row(session)).collect();
        self.picker.set_rows(rows);
        self.update_hint();
    }

    fn row(&self, session: &ListedSession) -> Row {
        let is_here = Some(&session.session_id) == self.current.as_ref();
        let sign = match session.state {
            ListedState::Waits => self.waits_sign,
            ListedState::Interrupted => self.signs.failed,
            ListedState::Paused => self.signs.running,
            ListedState::Elsewhere => self.signs.denied,
            ListedState::Done => " ",
        };
        let mark = match session.state {
            _ if is_here => "open here",
            ListedState::Waits => "waiting for you",
            ListedState::Interrupted => "interrupted",
            ListedState::Paused => "paused",
            ListedState::Elsewhere => "open elsewhere",
            ListedState::Done => "",
        };
        let title = session.title.as_deref().map_or_else(|| "(only a draft)".to_owned(), text::reveal_line);
        let branch = session.branch.as_deref().map(text::reveal_line).unwrap_or_default();
        let cost = session.cost_usd.map(|cost| format_estimate(cost, session.estimated)).unwrap_or_default();
        let id: String = session.session_id.as_str().chars().take(8).collect();
        let mut detail = vec![text::reveal_line(&id), text::reveal_line(&session.model)];
        detail.extend(session.elsewhere.as_deref().map(text::reveal_line));
        detail.extend(session.hit.as_deref().map(|hit| format!("\"{}\"", text::reveal_line(hit))));
        detail.retain(|part| !part.is_empty());
        Row {
            key: session.session_id.to_string(),
            cells: vec![
                format!("{sign} {title}"),
                text::reveal_line(&session.age),
                text::truncate(&branch, BRANCH).into_owned(),
                cost,
            ],
            mark,
            lacks: session.lacks.as_deref().map(text::reveal_line),
            detail: detail.join(&format!(" {} ", self.signs.dot)),
        }
    }

    fn update_hint(&mut self) {
        let (here, all) = self.counts;
        let dot = self.signs.dot;
        let which = if self.archived {
            format!("[archived {all}]")
        } else if self.all {
            format!("here {here} {dot} [all {all}]")
        } else {
            format!("[here {here}] {dot} all {all}")
        };
        let open = self.sessions.iter().filter(|session| session.state == ListedState::Interrupted).count();
        let open = if open > 0 { format!(" {dot} {open} interrupted") } else { String::new() };
        let looks = if self.looks_on && !self.picker.filter().is_empty() { format!(" {dot} searching") } else { String::new() };
        self.picker.aside = format!("{which} {dot} by {}{open}{looks}", self.order.label());
        self.picker.asked = self.renaming.as_ref().map(|(_, title)| ("new title: ".to_owned(), title.clone()));
    }

    /// Returns the highlighted session.
    pub(crate) fn highlighted(&self) -> Option<&ListedSession> {
        let key = &self.picker.highlighted()?.key;
        self.sessions.iter().find(|session| session.session_id.as_str() == *key)
    }

    /// Returns the preview of the highlighted session, once loaded.
    pub(crate) fn highlighted_preview(&self) -> Option<&SessionPreview> {
        let at = self.highlighted()?;
        self.look.as_ref().filter(|look| look.session_id == at.session_id)
    }

    pub(crate) fn is_current(&self, id: &SessionId) -> bool {
        self.current.as_ref() == Some(id)
    }

    pub(crate) fn is_renaming(&self) -> bool {
        self.renaming.is_some()
    }

    pub(crate) fn rename(&mut self, id: &SessionId, title: &str) {
        for session in self.sessions.iter_mut().filter(|session| session.session_id == *id) {
            session.title = Some(title.to_owned());
        }
        self.refresh();
    }

    /// Removes a session that was deleted, archived or unarchived.
    pub(crate) fn remove(&mut self, id: &SessionId) {
        let is_it = |session: &ListedSession| session.session_id == *id;
        let Some(at) = self.sessions.iter().position(is_it) else { return };
        let was_here = self.sessions.remove(at).elsewhere.is_none();
        self.counts = (self.counts.0.saturating_sub(u64::from(was_here)), self.counts.1.saturating_sub(1));
        self.refresh();
    }

    pub(crate) fn paste(&mut self, words: &str) -> Choice {
        if let Some((_, title)) = &mut self.renaming {
            title.extend(words.chars().filter(|letter| !letter.is_control()));
            self.update_hint();
            return Choice::Nothing;
        }
        self.picker.insert(words);
        Choice::Ask
    }

    /// Handles a key; `wide` says whether the preview is next to the list.
    pub(crate) fn key(&mut self, key: KeyEvent, wide: bool) -> Choice {
        if self.renaming.is_some() {
            return self.key_of_title(key);
        }
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // A space filters nothing, so it is free as long as nothing is typed.
            KeyCode::Char(' ') if !wide && self.picker.filter().is_empty() => self.shows_look = !self.shows_look,
            KeyCode::Tab => {
                (self.all, self.archived) = match (self.all, self.archived) {
                    (false, _) => (true, false),
                    (true, false) => (true, true),
                    (true, true) => (false, false),
                };
                return self.ask();
            }
            KeyCode::Char('a') if ctrl => {
                let Some(at) = self.highlighted() else { return Choice::Nothing };
                if self.is_current(&at.session_id) {
                    return Choice::Refused("this session is open here; leave it with /new before you archive it".to_owned());
                }
                return Choice::Archive(at.session_id.clone(), !self.archived);
            }
            KeyCode::Char('o') if ctrl => {
                let at = Order::ALL.iter().position(|order| *order == self.order).unwrap_or(0);
                self.order = Order::ALL[(at + 1) % Order::ALL.len()];
                self.refresh();
            }
            KeyCode::Char('r') if ctrl => {
                let title = self
                    .highlighted()
                    .map(|at| (at.session_id.clone(), at.title.as_deref().map(text::reveal_line).unwrap_or_default()));
                self.renaming = title;
                self.update_hint();
            }
            KeyCode::Char('x') if ctrl => {
                let Some(at) = self.highlighted() else { return Choice::Nothing };
                if self.is_current(&at.session_id) {
                    return Choice::Refused("this session is open here; leave it with /new before you delete it".to_owned());
                }
                let title = at.title.as_deref().map_or_else(|| "(only a draft)".to_owned(), text::reveal_line);
                return Choice::Delete(at.session_id.clone(), title);
            }
            KeyCode::Char('t') if ctrl => {
                return self.highlighted().map_or(Choice::Nothing, |at| Choice::Transcript(at.session_id.clone()));
            }
            KeyCode::Char('f') if ctrl => {
                return self.highlighted().map_or(Choice::Nothing, |at| Choice::Fork(at.session_id.clone()));
            }
            KeyCode::Esc if self.shows_look && !wide => self.shows_look = false,
            _ => {
                let before = self.picker.filter().to_owned();
                let picked = self.picker.key(key);
                if self.picker.filter() != before {
                    return self.ask();
                }
                return match picked {
                    PickerResult::Nothing => Choice::Nothing,
                    PickerResult::Refused(why) => Choice::Refused(format!("this session cannot be opened: {why}")),
                    PickerResult::Closed => Choice::Closed,
                    PickerResult::Other => Choice::Other,
                    PickerResult::Chosen(id) => Choice::Open(SessionId::new(id)),
                };
            }
        }
        Choice::Nothing
    }

    fn ask(&mut self) -> Choice {
        self.looks_on = true;
        self.update_hint();
        Choice::Ask
    }

    fn key_of_title(&mut self, key: KeyEvent) -> Choice {
        let Some((id, title)) = &mut self.renaming else { return Choice::Nothing };
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let mut choice = Choice::Nothing;
        match key.code {
            KeyCode::Esc => self.renaming = None,
            KeyCode::Char('c') if ctrl => self.renaming = None,
            KeyCode::Enter if !title.trim().is_empty() => {
                choice = Choice::Rename(id.clone(), title.trim().to_owned());
                self.renaming = None;
            }
            KeyCode::Backspace => {
                title.pop();
            }
            KeyCode::Char('u') if ctrl => title.clear(),
            KeyCode::Char('z') if ctrl => return Choice::Other,
            KeyCode::Char(letter) if !ctrl && title.chars().count() < TITLE_CHARS => title.push(letter),
            _ => {}
        }
        self.update_hint();
        choice
    }
}
