//! Mode of a session: chosen on the command line, in the session itself, or in the settings.

use super::SessionNotices;
use crate::host::context::AppContext;
use crate::host::nesting::Nesting;
use crate::host::options::Common;
use crate::host::session::PIECE_RECORDS;
use crate::host::session_error::SessionError;
use crate::protocol::Mode;
use crate::session::{RecordedMode, recorded_mode};
use crate::store::{SessionSummary, Store};

/// Mode in which a session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SessionMode {
    mode: Mode,
    source: ModeSource,
    /// Mode in the settings.
    settings: Mode,
}

/// Source of the mode of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModeSource {
    /// `--mode`
    CommandLine,
    /// The user chose it in an earlier run of the session.
    Session,
    Settings,
    /// The limit for a process inside a command that aye runs.
    Nesting,
}

impl SessionMode {
    /// Chooses the mode: that of `--mode`, otherwise the user's choice for the session, otherwise that in the settings.
    fn choose(place: &AppContext, common: &Common, recorded: Option<RecordedMode>) -> Self {
        let laxest = match Nesting::detect() {
            Nesting::Outermost => Mode::Auto,
            // The command could have written the journal.
            Nesting::InsideAye => Mode::default(),
        };
        Self::among(common, recorded, place.session_mode(None), laxest)
    }

    /// Chooses the mode. `laxest` limits a choice that the journal records.
    fn among(common: &Common, recorded: Option<RecordedMode>, settings: Mode, laxest: Mode) -> Self {
        let own = recorded.filter(|recorded| recorded.is_chosen);
        let (mode, source) = match (common.mode, own, common.fallback_mode) {
            (Some(mode), ..) => (mode, ModeSource::CommandLine),
            (None, Some(own), _) if own.mode > laxest => (laxest, ModeSource::Nesting),
            (None, Some(own), _) => (own.mode, ModeSource::Session),
            (None, None, Some(mode)) => (mode, ModeSource::CommandLine),
            (None, None, None) => (settings, ModeSource::Settings),
        };
        Self { mode, source, settings }
    }

    /// Returns whether the user chose the mode for this session.
    fn is_chosen(self) -> bool {
        matches!(self.source, ModeSource::CommandLine | ModeSource::Session)
    }

    /// Returns a notice if the session last ran in another mode, or if its own mode is more permissive than that in the
    /// settings.
    fn difference(self, recorded: Option<RecordedMode>) -> Option<String> {
        let before = recorded?.mode;
        let source = match self.source {
            ModeSource::CommandLine => "from the command line",
            ModeSource::Session => {
                let (own, settings) = (self.mode.as_str(), self.settings.as_str());
                let notice = || format!("mode {own}, which you chose for this session; your settings select {settings}");
                return (self.mode > self.settings).then(notice);
            }
            ModeSource::Settings => "from your settings",
            ModeSource::Nesting => "the most permissive mode inside a command that aye runs",
        };
        let (mode, before_name) = (self.mode.as_str(), before.as_str());
        (self.mode != before).then(|| format!("mode {mode} ({source}); this session was in mode {before_name}"))
    }
}

/// Sets the mode in which the session starts, and adds a notice if the session last ran in another one.
pub(super) fn set_mode(
    place: &mut AppContext,
    common: &Common,
    (store, chosen): (&Store, Option<&SessionSummary>),
    notices: &mut SessionNotices,
) -> Result<(), SessionError> {
    let recorded = last_mode(store, place, chosen)?;
    let choice = SessionMode::choose(place, common, recorded);
    notices.add_all(choice.difference(recorded));
    (place.mode, place.is_mode_chosen) = (choice.mode, choice.is_chosen());
    Ok(())
}

/// Returns the mode in which a session last ran; `None` for a new session, and for that of an agent, which has the mode
/// of the session that started it.
fn last_mode(store: &Store, place: &AppContext, chosen: Option<&SessionSummary>) -> Result<Option<RecordedMode>, SessionError> {
    let Some(session) = chosen.filter(|_| place.parent.is_none()) else { return Ok(None) };
    let mut before = None;
    loop {
        let part = store.page(&session.session_id, before, PIECE_RECORDS)?;
        let found = recorded_mode(&part.records);
        if found.is_some() || part.before.is_none() {
            return Ok(found);
        }
        before = part.before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(mode: Mode, is_chosen: bool) -> Option<RecordedMode> {
        Some(RecordedMode { mode, is_chosen })
    }

    #[test]
    fn a_session_keeps_its_own_mode_unless_the_command_line_names_another() {
        let (plan, auto) = (recorded(Mode::Plan, true), recorded(Mode::Auto, true));
        for (flag, fallback, recorded, settings, mode, is_chosen) in [
            (None, None, None, Mode::Auto, Mode::Auto, false),
            (None, None, plan, Mode::Auto, Mode::Plan, true),
            (None, None, auto, Mode::Ask, Mode::Auto, true),
            (None, None, recorded(Mode::Plan, false), Mode::Auto, Mode::Auto, false),
            (Some(Mode::Ask), None, plan, Mode::Auto, Mode::Ask, true),
            (None, Some(Mode::Auto), plan, Mode::Ask, Mode::Plan, true),
            (None, Some(Mode::Auto), recorded(Mode::Plan, false), Mode::Ask, Mode::Auto, true),
        ] {
            let common = Common { mode: flag, fallback_mode: fallback, ..Common::default() };
            let chosen = SessionMode::among(&common, recorded, settings, Mode::Auto);
            assert_eq!((chosen.mode, chosen.is_chosen()), (mode, is_chosen), "{flag:?} {fallback:?} {recorded:?} {settings:?}");
        }
    }

    #[test]
    fn inside_a_command_of_aye_a_session_does_not_get_back_a_more_permissive_mode() {
        let common = Common::default();
        let chosen = SessionMode::among(&common, recorded(Mode::Auto, true), Mode::Ask, Mode::Ask);
        assert_eq!((chosen.mode, chosen.is_chosen()), (Mode::Ask, false));
        assert!(chosen.difference(recorded(Mode::Auto, true)).unwrap().contains("this session was in mode auto"));
    }

    #[test]
    fn a_mode_that_differs_from_that_of_the_last_run_is_reported() {
        let common = |mode| Common { mode, ..Common::default() };
        for (flag, before, settings, notice) in [
            (None, recorded(Mode::Plan, true), Mode::Auto, None),
            (
                None,
                recorded(Mode::Auto, true),
                Mode::Ask,
                Some("mode auto, which you chose for this session; your settings select ask"),
            ),
            (None, recorded(Mode::Auto, false), Mode::Auto, None),
            (None, None, Mode::Auto, None),
            (None, recorded(Mode::Ask, false), Mode::Auto, Some("mode auto (from your settings); this session was in mode ask")),
            (
                Some(Mode::Auto),
                recorded(Mode::Plan, true),
                Mode::Ask,
                Some("mode auto (from the command line); this session was in mode plan"),
            ),
        ] {
            let chosen = SessionMode::among(&common(flag), before, settings, Mode::Auto);
            assert_eq!(chosen.difference(before).as_deref(), notice, "{flag:?} {before:?}");
        }
    }
}
