//! Whether the effects of a command can be shown before they happen, and why not.

use crate::policy::{GitWrites, git_writes};
use crate::protocol::{PreviewOffer, SandboxTier};
use crate::sys::sandbox::NetworkAccess;
use crate::tools::shell::command_run::Work;
use crate::tools::shell::confine::Writes;
use crate::tools::tool::Settings;

/// Words of a line that goes on until it is stopped.
const STAYS: &[&str] = &[
    "tail -f",
    "tail -F",
    "http.server",
    "npm start",
    "npm run dev",
    "npm run start",
    "npm run serve",
    "npm run watch",
    "pnpm dev",
    "pnpm start",
    "yarn dev",
    "yarn start",
    "cargo watch",
    "docker compose up",
    "flask run",
    "manage.py runserver",
    "rails server",
    "rails s",
];

/// For a line as it was planned.
pub(in crate::tools) fn offer(work: &Work, settings: &Settings) -> PreviewOffer {
    match obstacle(work, settings) {
        Some(reason) => PreviewOffer::Impossible { reason },
        None => PreviewOffer::Possible,
    }
}

fn obstacle(work: &Work, settings: &Settings) -> Option<String> {
    let holding = &settings.holding;
    if work.background {
        return Some("it goes on in the background, and a preview ends with its command".to_owned());
    }
    if work.narrow.read_only || holding.writes_in_workspace() == Writes::Nothing {
        return Some("commands may only read the workspace, so there is nothing to preview".to_owned());
    }
    if holding.tier < SandboxTier::Preview {
        let why = holding.previews.as_ref().err().cloned();
        return Some(why.unwrap_or_else(|| format!("the sandbox of this system is `{}`", holding.tier.as_str())));
    }
    if let Err(why) = &holding.previews {
        return Some(why.clone());
    }
    if holding.network == NetworkAccess::Open || !work.opens.is_empty() {
        return Some("it is given the network or a place outside, and a preview has neither".to_owned());
    }
    if git_writes(&work.line) != GitWrites::Nothing {
        return Some("git commands that write are run for good: `.git` is no part of a preview".to_owned());
    }
    stays(&work.line).then(|| "it goes on in the background, and a preview ends with its command".to_owned())
}

/// Whether a line plainly is meant to outlive its end, or not to end.
fn stays(line: &str) -> bool {
    let line = line.trim_end();
    let in_background = line.ends_with('&') && !line.ends_with("&&");
    let words = line.split_whitespace().collect::<Vec<_>>();
    let watches = words.first() == Some(&"watch") || words.contains(&"--watch");
    let text = format!(" {} ", words.join(" "));
    in_background || watches || STAYS.iter().any(|stays| text.contains(&format!(" {stays} ")))
}

#[cfg(test)]
mod tests {
    use super::stays;

    #[test]
    fn a_line_that_stays_is_known_by_its_words() {
        let staying = ["sleep 9 &", "npm run dev", "tail -f log", "watch ls", "jest --watch", "python3 -m http.server 80"];
        assert_eq!(staying.map(stays), [true; 6]);
        let ending = ["true && false", "a & b", "cargo test", "tail -n 3 f", "npm run development", "echo 'x &' y"];
        assert_eq!(ending.map(stays), [false; 6]);
    }
}
