//! Tables of programs that need a terminal, or that run until the user stops them.

use super::shell::{Arg, Invocation, read};

/// Programs that draw on the terminal and read key presses.
const SCREENS: &[&str] = &[
    "alsamixer",
    "atop",
    "btop",
    "cfdisk",
    "dialog",
    "elinks",
    "emacs",
    "fzf",
    "gitui",
    "glances",
    "helix",
    "htop",
    "hx",
    "iotop",
    "irssi",
    "joe",
    "k9s",
    "kak",
    "lazydocker",
    "lazygit",
    "lf",
    "links",
    "lynx",
    "mc",
    "micro",
    "minicom",
    "mutt",
    "nano",
    "ncdu",
    "nethogs",
    "nnn",
    "nvim",
    "picocom",
    "pico",
    "ranger",
    "screen",
    "sk",
    "telnet",
    "tig",
    "tmux",
    "top",
    "vi",
    "view",
    "vim",
    "vimdiff",
    "visudo",
    "w3m",
    "weechat",
    "whiptail",
    "yazi",
    "zellij",
];
/// Programs that run a server or watch files, whatever their arguments.
const SERVERS: &[&str] = &[
    "bacon",
    "caddy",
    "daphne",
    "entr",
    "gunicorn",
    "http-server",
    "hypercorn",
    "inotifywait",
    "jupyter-lab",
    "jupyter-notebook",
    "live-server",
    "mongod",
    "mysqld",
    "nginx",
    "nodemon",
    "postgres",
    "puma",
    "redis-server",
    "uvicorn",
    "watch",
    "watchexec",
    "watchman",
];
/// Programs that run a server or watch files if given one of these arguments.
const SERVING: &[(&str, &[&str])] = &[
    ("air", &[]),
    ("artisan", &["serve"]),
    ("astro", &["dev", "preview"]),
    ("cargo", &["watch"]),
    ("compose", &["up"]),
    ("deno", &["serve"]),
    ("dmesg", &["-w", "--follow"]),
    ("docker", &["up"]),
    ("docker-compose", &["up"]),
    ("flask", &["run"]),
    ("gatsby", &["develop", "serve"]),
    ("hugo", &["server", "serve"]),
    ("jekyll", &["serve"]),
    ("journalctl", &["-f", "--follow"]),
    ("jupyter", &["lab", "notebook", "server"]),
    ("mkdocs", &["serve"]),
    ("nc", &["-l"]),
    ("next", &["dev", "start"]),
    ("ng", &["serve"]),
    ("nuxt", &["dev", "start"]),
    ("php", &["-S", "serve"]),
    ("podman", &["up"]),
    ("rails", &["server", "s"]),
    ("remix", &["dev"]),
    ("rustup", &["doc"]),
    ("tail", &["-f", "-F", "--follow"]),
    ("trunk", &["serve"]),
    ("tsc", &["-w"]),
    ("vite", &["dev", "serve", "preview"]),
    ("webpack", &["serve"]),
    ("webpack-dev-server", &[]),
];
/// Programs that run a server unless they are given one of these subcommands.
const SERVING_BY_DEFAULT: &[(&str, &[&str])] = &[("vite", &["build", "optimize"]), ("parcel", &["build", "help"])];
/// Names of package scripts that run a server or watch files.
const SCRIPTS: &[&str] = &["dev", "develop", "serve", "server", "start", "watch"];
/// Programs that run package scripts by name.
const RUNNERS: &[&str] = &["bun", "npm", "pnpm", "yarn"];

/// Reason why a command needs the user's attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    /// The command needs a terminal.
    Terminal,
    /// The command runs until the user stops it.
    Endless,
}

/// Returns why a running command line needs the user's attention, or `None` if none of its programs is listed in the
/// tables.
pub fn attendance(line: &str) -> Option<Attendance> {
    let trimmed = line.trim_end();
    if trimmed.ends_with('&') && !trimmed.ends_with("&&") {
        return Some(Attendance::Endless);
    }
    let line = read(line);
    let mut found = line.parts.iter().flat_map(|part| &part.invocations).filter_map(invocation_attendance);
    found.next()
}

fn invocation_attendance(invocation: &Invocation) -> Option<Attendance> {
    let (program, words) = (invocation.base(), &invocation.argv[1..]);
    let has = |word: &str| words.iter().any(|arg| arg.text == word);
    if SCREENS.contains(&program) && !["--version", "--help", "--batch", "-batch"].iter().any(|word| has(word)) {
        return Some(Attendance::Terminal);
    }
    let asks_for_terminal = matches!((program, words.first().map(|word| word.text.as_str())), ("crontab", Some("-e")));
    if asks_for_terminal {
        return Some(Attendance::Terminal);
    }
    let watches = words.iter().any(|arg| matches!(arg.text.as_str(), "--watch" | "--watch-all" | "--watchAll" | "--serve"));
    let serves = SERVING.iter().any(|(name, signs)| *name == program && (signs.is_empty() || signs.iter().any(|sign| has(sign))));
    let first = words.iter().map(|arg| arg.text.as_str()).find(|text| !text.starts_with('-'));
    let shows = ["--version", "--help", "-v", "-h"].iter().any(|word| has(word));
    let defaults = SERVING_BY_DEFAULT
        .iter()
        .any(|(name, others)| *name == program && !shows && !first.is_some_and(|first| others.contains(&first)));
    let module = words.windows(2).any(|pair| pair[0].text == "-m" && is_serving_module(&pair[1]));
    let script = RUNNERS.contains(&program) && runs_serving_script(words);
    let manage = words.windows(2).any(|pair| pair[0].text.ends_with("manage.py") && pair[1].text == "runserver")
        || (program == "manage.py" && has("runserver"));
    (SERVERS.contains(&program) || watches || serves || defaults || module || script || manage).then_some(Attendance::Endless)
}

fn is_serving_module(word: &Arg) -> bool {
    matches!(word.text.as_str(), "http.server" | "SimpleHTTPServer" | "uvicorn" | "gunicorn" | "flask" | "jupyter" | "pdb")
}

/// Returns whether the words run a script that serves or watches, such as `npm run dev`, `yarn start` or `pnpm run
/// dev:web`.
fn runs_serving_script(words: &[Arg]) -> bool {
    let mut names = words.iter().map(|word| word.text.as_str()).filter(|word| !word.starts_with('-'));
    let script = match names.next() {
        Some("run" | "run-script") => names.next(),
        first => first,
    };
    script.is_some_and(|script| SCRIPTS.contains(&script.split(':').next().unwrap_or(script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_need_a_terminal_or_run_forever_are_detected() {
        for line in ["vim a", "sudo nano /etc/hosts", "git log && htop", "crontab -e", "tmux new"] {
            assert_eq!(attendance(line), Some(Attendance::Terminal), "{line}");
        }
        for line in [
            "sleep 9 &",
            "npm run dev",
            "npm start",
            "yarn dev:web",
            "tail -f log",
            "watch ls",
            "jest --watch",
            "python3 -m http.server 80",
            "python manage.py runserver",
            "docker compose up",
            "cargo watch -x test",
            "cd web && npx vite preview",
            "env PORT=1 flask run",
            "vite",
            "npx vite --port 3000",
        ] {
            assert_eq!(attendance(line), Some(Attendance::Endless), "{line}");
        }
        for line in [
            "true && false",
            "a & b",
            "cargo test",
            "tail -n 3 f",
            "npm run development",
            "npm test",
            "echo 'x &' y",
            "vite build",
            "vite --version",
            "vim --version",
            "python3 -c 'print(1)'",
            "docker build .",
        ] {
            assert_eq!(attendance(line), None, "{line}");
        }
    }
}
