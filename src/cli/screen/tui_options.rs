//! Determines the appearance of the screen from the settings and the terminal's environment.

use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::cli::screen::desktop;
use crate::cli::screen::task_programs;
use crate::config::NotificationSetting;
use crate::host::context::AppContext;
use crate::host::memory;
use crate::host::options::Color;
use crate::host::query::keymap_watch::keys;
use crate::tui::{
    Background, ColourDepth, Emulator, GuardTiming, HistoryOptions, HistoryRedactor, Notices, TerminalTraits, ThemeChoice,
    UiOptions,
};
use std::sync::Arc;

/// Returns the options for a screen. `here` is the workspace of its session.
pub(crate) fn options(app: &AppContext, here: &CurrentWorkspace, color: Color) -> UiOptions {
    let own = here.clone();
    let variable = |name: &str| app.environment.get(name).unwrap_or_default();
    let screen = app.settings.screen();
    let emulator = Emulator::detect(variable);
    let colours =
        if color == Color::Never || !variable("NO_COLOR").is_empty() { ColourDepth::None } else { emulator.colours(variable) };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().map(variable).find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    let is_unicode = (locale.contains("utf-8") || locale.contains("utf8")) && !emulator.is_console();
    let lacks = missing_features_notice(screen.ascii.is_none() && !is_unicode, emulator.is_console(), colours, color, variable);
    UiOptions {
        theme: match screen.theme.as_str() {
            "auto" => ThemeChoice::Auto,
            name => ThemeChoice::Named(name.to_owned()),
        },
        mouse: app.settings.mouse() && !emulator.delays_escape(),
        terminal: TerminalTraits {
            emulator,
            ground: Background::from_colorfgbg(variable("COLORFGBG")),
            colours,
            ascii: screen.ascii.unwrap_or(!is_unicode),
            lacks,
        },
        themes: Some(app.directories.config.join("themes")),
        reduce_motion: screen.reduce_motion || !matches!(variable("AYE_REDUCE_MOTION"), "" | "0"),
        notices: match screen.notifications {
            NotificationSetting::Auto => Notices::Auto,
            NotificationSetting::Off => Notices::Off,
            NotificationSetting::Bell => Notices::Bell,
        },
        pace: GuardTiming {
            strict: app.settings.approval.strict,
            arming_ms: app.settings.approval.arming_ms,
            ..GuardTiming::default()
        },
        history: HistoryOptions {
            file: Some(app.directories.data.join("history.jsonl")),
            redactor: HistoryRedactor(Arc::new(move |prompt| own.redactor().redact(prompt).text.into_owned())),
        },
        clipboard: desktop::clipboard(app),
        shows: desktop::editor_opener(here),
        tasks: task_programs::task_runner(here),
        memory: memory::is_enabled(app),
        keys: keys(app),
        status: screen.status,
        sets_up: false,
        closes_with_session: false,
        vim: screen.vim,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cwd: app.workspace_display(),
        home: Some(app.home.clone()),
    }
}

/// Returns a notice if colours or symbols are unavailable, unless the user disabled them.
fn missing_features_notice<'a>(
    signs: bool,
    console: bool,
    colours: ColourDepth,
    color: Color,
    variable: impl Fn(&str) -> &'a str,
) -> Option<String> {
    let signs = match (signs, console) {
        (false, _) => None,
        (true, true) => Some("this console supports few symbols; aye uses ASCII characters".to_owned()),
        (true, false) => {
            Some("the locale is not UTF-8; aye uses ASCII characters (set `LC_ALL=C.UTF-8` for all symbols)".to_owned())
        }
    };
    let asked = color == Color::Never || !variable("NO_COLOR").is_empty();
    let colours = (colours == ColourDepth::None && !asked)
        .then(|| format!("the terminal `{}` has no colours; symbols and text carry the same information", variable("TERM")));
    let all: Vec<String> = signs.into_iter().chain(colours).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
