//! List of sessions to resume, with actions on the highlighted session and a preview of it.

mod view;

use super::{Canvas, LayerContext, LayerRequest, Reaction, ScreenLayer};
use crate::protocol::{ListedSession, ListedState, SessionId, SessionPreview};
use crate::text;
use crate::tui::format::format_estimate;
use crate::tui::glyphs::Glyphs;
use crate::tui::picker::{Column, Picker, PickerResult, Row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

const COLUMNS: &[Column] = &[
    Column { head: "session", is_number: false, rank: 0 },
    Column { head: "age", is_number: true, rank: 1 },
    Column { head: "branch", is_number: false, rank: 2 },
    Column { head: "cost", is_number: true, rank: 3 },
];
/// Maximum width of a branch name, in cells.
const BRANCH: usize = 16;
/// Maximum length of a session title, in characters.
const TITLE_CHARS: usize = 80;

/// Order in which the sessions are listed.
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

pub(crate) struct SessionList {
    picker: Picker,
    sessions: Vec<ListedSession>,
    /// Whether the list includes sessions of other projects.
    pub all: bool,
    /// Whether the list shows archived sessions instead of the others.
    pub archived: bool,
    order: Order,
    counts: (u64, u64),
    looks_on: bool,
    /// Most recently received preview, which contains the last messages of a session.
    look: Option<SessionPreview>,
    /// Session whose preview was most recently requested.
    requested_preview: Option<SessionId>,
    /// Whether the preview covers the list, if the screen has no room for both.
    shows_look: bool,
    /// Whether there is no conversation below the list, so closing the list quits aye.
    is_alone: bool,
    /// Whether text typed elsewhere has changed the filter, so the sessions must be requested again.
    is_stale: bool,
    /// Session that the user is renaming, if any, and the title entered so far.
    renaming: Option<(SessionId, String)>,
    /// Session that is open in this process, if any.
    current: Option<SessionId>,
    waits_sign: &'static str,
    signs: Glyphs,
}

impl SessionList {
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
            requested_preview: None,
            shows_look: false,
            is_alone: false,
            is_stale: false,
            renaming: None,
            current,
            waits_sign: signs.state.waits,
            signs: *signs,
        };
        sessions.update_hint();
        sessions
    }

    /// Creates the list as the only view on the screen.
    pub(crate) fn alone(current: Option<SessionId>, signs: &Glyphs) -> Self {
        Self { is_alone: true, ..Self::new(current, signs) }
    }

    /// Returns the list with the given initial filter text.
    pub(crate) fn with_filter(mut self, words: &str) -> Self {
        self.picker.insert(words);
        self
    }

    pub(crate) fn set_preview(&mut self, preview: SessionPreview) {
        self.look = Some(preview);
    }

    /// Returns the filter text exactly as typed.
    pub(crate) fn filter(&self) -> &str {
        self.picker.filter()
    }

    /// Stores the sessions that match the filter, unless the filter or the choice of sessions has changed since the
    /// request.
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

    /// Returns whether the list is complete, with no more matching sessions to arrive.
    pub(crate) fn is_whole(&self) -> bool {
        !self.looks_on
    }

    pub(crate) fn sessions(&self) -> &[ListedSession] {
        &self.sessions
    }

    /// Returns the filter text in a form that is safe to display.
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
            ListedState::Interrupted => self.signs.state.failed,
            ListedState::Paused => self.signs.state.running,
            ListedState::Elsewhere => self.signs.state.denied,
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
        let title = session.title.as_deref().map_or_else(|| "(no prompt)".to_owned(), text::reveal_line);
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
        self.picker.empty_text = match (self.looks_on, self.archived, self.all) {
            (true, ..) => "loading",
            (false, true, _) => "no archived sessions",
            (false, false, true) => "no other sessions yet; a session is saved with its first message",
            (false, false, false) => "no other sessions in this project yet; tab shows all projects",
        };
        self.picker.aside = format!("{which} {dot} by {}{open}{looks}", self.order.label());
        self.picker.asked = self.renaming.as_ref().map(|(_, title)| ("new title: ".to_owned(), title.clone()));
    }

    /// Returns the highlighted session, if there is one.
    pub(crate) fn highlighted(&self) -> Option<&ListedSession> {
        let key = &self.picker.highlighted()?.key;
        self.sessions.iter().find(|session| session.session_id.as_str() == *key)
    }

    /// Returns the preview of the highlighted session, or `None` if it has not arrived yet.
    fn highlighted_preview(&self) -> Option<&SessionPreview> {
        let at = self.highlighted()?;
        self.look.as_ref().filter(|look| look.session_id == at.session_id)
    }

    pub(crate) fn is_current(&self, id: &SessionId) -> bool {
        self.current.as_ref() == Some(id)
    }

    pub(crate) fn rename(&mut self, id: &SessionId, title: &str) {
        for session in self.sessions.iter_mut().filter(|session| session.session_id == *id) {
            session.title = Some(title.to_owned());
        }
        self.refresh();
    }

    /// Removes a session from the list because it was deleted, archived or unarchived.
    pub(crate) fn remove(&mut self, id: &SessionId) {
        let is_it = |session: &ListedSession| session.session_id == *id;
        let Some(at) = self.sessions.iter().position(is_it) else { return };
        let was_here = self.sessions.remove(at).elsewhere.is_none();
        self.counts = (self.counts.0.saturating_sub(u64::from(was_here)), self.counts.1.saturating_sub(1));
        self.refresh();
    }

    /// Adds text to the filter or, if the user is renaming a session, to the title. Returns a request for the sessions
    /// if the filter has changed.
    fn insert(&mut self, words: &str) -> Option<LayerRequest> {
        if let Some((_, title)) = &mut self.renaming {
            title.extend(words.chars().filter(|letter| !letter.is_control()));
            self.update_hint();
            return None;
        }
        self.picker.insert(words);
        Some(LayerRequest::ListSessions)
    }

    /// Adds text that was typed into a dialog in front of the list.
    pub(crate) fn insert_typed_elsewhere(&mut self, words: &str) {
        self.is_stale |= self.insert(words).is_some();
    }

    /// Returns whether the sessions must be requested again, and resets that flag.
    pub(crate) fn take_stale(&mut self) -> bool {
        std::mem::take(&mut self.is_stale)
    }

    /// Handles a key that concerns the list or its filter.
    fn on_list_key(&mut self, key: KeyEvent) -> Reaction {
        let before = self.picker.filter().to_owned();
        let picked = self.picker.key(key);
        if self.picker.filter() != before {
            return self.request_list();
        }
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match picked {
            PickerResult::Nothing => Reaction::Done,
            PickerResult::Refused(why) => {
                Reaction::Request(LayerRequest::ShowToast(format!("this session cannot be opened: {why}")))
            }
            PickerResult::Closed if self.is_alone => Reaction::Request(LayerRequest::Quit),
            PickerResult::Closed => Reaction::Close,
            PickerResult::Chosen(id) => Reaction::Request(LayerRequest::OpenSession(SessionId::new(id))),
            PickerResult::Other if self.is_alone && ctrl && key.code == KeyCode::Char('d') => {
                Reaction::Request(LayerRequest::Quit)
            }
            PickerResult::Other => Reaction::Pass,
        }
    }

    /// Handles a ctrl key that triggers an action on the highlighted session.
    fn on_action_key(&mut self, letter: char) -> Reaction {
        let Some(at) = self.highlighted() else { return Reaction::Done };
        let (id, is_current) = (at.session_id.clone(), self.is_current(&at.session_id));
        let title = at.title.as_deref().map(text::reveal_line);
        let refused = |action: &str| {
            let words = format!("this session is open here; leave it with /new before you {action} it");
            Reaction::Request(LayerRequest::ShowToast(words))
        };
        match letter {
            'a' if is_current => refused("archive"),
            'x' if is_current => refused("delete"),
            'a' => Reaction::Request(LayerRequest::ArchiveSession(id, !self.archived)),
            'x' => {
                let title = title.unwrap_or_else(|| "(no prompt)".to_owned());
                Reaction::Request(LayerRequest::AskToDelete(id, title))
            }
            't' => Reaction::Request(LayerRequest::ShowConversation(id)),
            'f' => Reaction::Request(LayerRequest::ForkSession(id)),
            'r' => {
                self.renaming = Some((id, title.unwrap_or_default()));
                self.update_hint();
                Reaction::Done
            }
            _ => Reaction::Pass,
        }
    }

    fn request_list(&mut self) -> Reaction {
        self.looks_on = true;
        self.update_hint();
        Reaction::Request(LayerRequest::ListSessions)
    }

    /// Handles a key while the user is entering a title.
    fn on_title_key(&mut self, key: KeyEvent) -> Reaction {
        let Some((id, title)) = &mut self.renaming else { return Reaction::Done };
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let mut reaction = Reaction::Done;
        match key.code {
            KeyCode::Esc => self.renaming = None,
            KeyCode::Char('c') if ctrl => self.renaming = None,
            KeyCode::Enter if !title.trim().is_empty() => {
                reaction = Reaction::Request(LayerRequest::RenameSession(id.clone(), title.trim().to_owned()));
                self.renaming = None;
            }
            KeyCode::Backspace => {
                title.pop();
            }
            KeyCode::Char('u') if ctrl => title.clear(),
            KeyCode::Char('z') if ctrl => return Reaction::Pass,
            KeyCode::Char(letter) if !ctrl && title.chars().count() < TITLE_CHARS => title.push(letter),
            _ => {}
        }
        self.update_hint();
        reaction
    }
}

impl ScreenLayer for SessionList {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.picker)
    }

    fn key(&mut self, key: KeyEvent, around: LayerContext) -> Reaction {
        if self.renaming.is_some() {
            return self.on_title_key(key);
        }
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // A filter cannot start with a space, so the space key is free while the filter is empty.
            KeyCode::Char(' ') if !around.is_wide && self.picker.filter().is_empty() => self.shows_look = !self.shows_look,
            KeyCode::Tab => {
                (self.all, self.archived) = match (self.all, self.archived) {
                    (false, _) => (true, false),
                    (true, false) => (true, true),
                    (true, true) => (false, false),
                };
                return self.request_list();
            }
            KeyCode::Char('o') if ctrl => {
                let at = Order::ALL.iter().position(|order| *order == self.order).unwrap_or(0);
                self.order = Order::ALL[(at + 1) % Order::ALL.len()];
                self.refresh();
            }
            KeyCode::Char(letter @ ('a' | 'f' | 'r' | 't' | 'x')) if ctrl => return self.on_action_key(letter),
            KeyCode::Esc if self.shows_look && !around.is_wide => self.shows_look = false,
            _ => return self.on_list_key(key),
        }
        Reaction::Done
    }

    fn paste(&mut self, text: &str) -> Reaction {
        self.insert(text).map_or(Reaction::Done, Reaction::Request)
    }

    fn on_highlight_moved(&mut self) -> Option<LayerRequest> {
        let at = self.highlighted()?.session_id.clone();
        if self.requested_preview.as_ref() == Some(&at) {
            return None;
        }
        self.requested_preview = Some(at.clone());
        Some(LayerRequest::PreviewSession(at))
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Option<Position> {
        Some(view::draw(self, area, buffer, canvas))
    }

    fn hints(&self, around: LayerContext) -> Vec<&'static str> {
        if self.renaming.is_some() {
            return vec!["enter rename", "esc back"];
        }
        let look = (!around.is_wide).then_some("space preview");
        // The hint about pending dialogs comes first here too.
        let tab = if around.has_questions { "tab review" } else { "tab project/all" };
        let keys = [tab, "ctrl+f fork", "ctrl+r rename", "ctrl+x delete", "ctrl+t transcript", "ctrl+a archive"];
        ["enter resume"].into_iter().chain(look).chain(["esc close"]).chain(keys).chain(["ctrl+o sort"]).collect()
    }
}
