//! Mode of a session: chosen on the command line, in the session itself, or in the settings.

use crate::host::context::AppContext;
use crate::host::nesting::Nesting;
use crate::host::options::Common;
use crate::protocol::Mode;
use crate::session::SessionState;

/// Mode in which a session continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionMode {
    pub mode: Mode,
    /// Mode that the user chose for the session.
    pub chosen: Option<Mode>,
    source: ModeSource,
    /// Mode in which the session last ran.
    before: Option<Mode>,
}

/// Source of the mode of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModeSource {
    /// `--mode`
    CommandLine,
    /// The user chose it in an earlier run of the session.
    Session,
    Settings,
}

impl SessionMode {
    /// Chooses the mode: that of `--mode`, otherwise the user's choice for the session, otherwise that in the settings. A
    /// choice in the journal can only make the mode stricter, because other programs may have written it, and because
    /// the settings may have become stricter since.
    pub(super) fn choose(app: &AppContext, common: &Common, state: &SessionState) -> Self {
        // An agent has the mode of the session that started it.
        let (chosen, before) = if app.parent.is_none() { (state.chosen_mode, state.mode) } else { (None, None) };
        let fallback = common.fallback_mode.map(|mode| match Nesting::detect() {
            Nesting::Outermost => mode,
            // A command that aye runs could have written the file of a task.
            Nesting::InsideAye => mode.min(Mode::default()),
        });
        Self::among((common.mode, fallback), chosen, before, app.session_mode(None))
    }

    fn among(
        (flag, fallback): (Option<Mode>, Option<Mode>),
        recorded: Option<Mode>,
        before: Option<Mode>,
        settings: Mode,
    ) -> Self {
        let (usual, usual_source) = match fallback {
            Some(mode) => (mode, ModeSource::CommandLine),
            None => (settings, ModeSource::Settings),
        };
        let (mode, source) = match (flag, recorded) {
            (Some(mode), _) => (mode, ModeSource::CommandLine),
            (None, Some(own)) if own < usual => (own, ModeSource::Session),
            (None, _) => (usual, usual_source),
        };
        Self { mode, chosen: flag.or(recorded).or(fallback), source, before }
    }

    /// Returns a notice if the session last ran in another mode.
    pub(super) fn difference(self) -> Option<String> {
        let before = self.before?;
        let source = match self.source {
            ModeSource::CommandLine => "from the command line",
            ModeSource::Session => "which you chose for this session",
            ModeSource::Settings => "from your settings",
        };
        let (mode, before_name) = (self.mode.as_str(), before.as_str());
        (self.mode != before).then(|| format!("mode {mode} ({source}); this session was in mode {before_name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(flag: Option<Mode>, fallback: Option<Mode>, recorded: Option<Mode>, settings: Mode) -> SessionMode {
        SessionMode::among((flag, fallback), recorded, recorded, settings)
    }

    #[test]
    fn a_session_keeps_its_own_stricter_mode_unless_the_command_line_names_another() {
        let (plan, auto) = (Some(Mode::Plan), Some(Mode::Auto));
        for (flag, fallback, recorded, settings, mode, chosen) in [
            (None, None, None, Mode::Auto, Mode::Auto, None),
            (None, None, plan, Mode::Auto, Mode::Plan, plan),
            (None, None, auto, Mode::Ask, Mode::Ask, auto),
            (None, None, Some(Mode::Ask), Mode::Plan, Mode::Plan, Some(Mode::Ask)),
            (Some(Mode::Ask), None, plan, Mode::Auto, Mode::Ask, Some(Mode::Ask)),
            (None, auto, plan, Mode::Ask, Mode::Plan, plan),
            (None, auto, None, Mode::Ask, Mode::Auto, auto),
            (None, plan, auto, Mode::Auto, Mode::Plan, auto),
        ] {
            let choice = choose(flag, fallback, recorded, settings);
            assert_eq!((choice.mode, choice.chosen), (mode, chosen), "{flag:?} {fallback:?} {recorded:?} {settings:?}");
        }
    }

    #[test]
    fn a_mode_that_differs_from_that_of_the_last_run_is_reported() {
        for (flag, before, recorded, settings, notice) in [
            (None, Some(Mode::Plan), Some(Mode::Plan), Mode::Auto, None),
            (None, None, None, Mode::Auto, None),
            (
                None,
                Some(Mode::Auto),
                Some(Mode::Auto),
                Mode::Ask,
                Some("mode ask (from your settings); this session was in mode auto"),
            ),
            (None, Some(Mode::Ask), None, Mode::Auto, Some("mode auto (from your settings); this session was in mode ask")),
            // An earlier run was restricted to plan mode.
            (
                None,
                Some(Mode::Plan),
                Some(Mode::Ask),
                Mode::Auto,
                Some("mode ask (which you chose for this session); this session was in mode plan"),
            ),
            (
                Some(Mode::Auto),
                Some(Mode::Plan),
                Some(Mode::Plan),
                Mode::Ask,
                Some("mode auto (from the command line); this session was in mode plan"),
            ),
        ] {
            let choice = SessionMode::among((flag, None), recorded, before, settings);
            assert_eq!(choice.difference().as_deref(), notice, "{flag:?} {before:?} {recorded:?}");
        }
    }
}
