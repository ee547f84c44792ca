//! Session that uses many kinds of effects. It is repeated with a fault at varying points, and its guarantees are
//! checked.

#[path = "story/acknowledged.rs"]
mod acknowledged;
#[path = "story/files.rs"]
mod files;
#[path = "story/tally.rs"]
mod tally;

pub use tally::{Tally, seed, wanted};

use super::server::Request;
use super::texts;
use super::trace::{Point, Traced, trace};
use super::{Answer, Project, Server, TIMEOUT, wait_until};
use acknowledged::Acknowledged;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const FIRST: &str = "begin the long work";
const SECOND: &str = "now the rest of it";
/// Number of steps of the first prompt, and of both prompts.
const FIRST_STEPS: usize = 4;
const STEPS: usize = 8;
/// Maximum number of starts without a fault until the story must be complete.
const STARTS: usize = 8;

/// How the commands of the story run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commands {
    Bare,
    /// In a preview that is applied without approval.
    Previewed,
    /// In a layer before any approval. The mode applies the effects. The commands delete nothing, because deletions
    /// need approval.
    Layered,
}

/// Run of the story: a project, a model, and everything that aye has reported so far.
pub struct Story {
    commands: Commands,
    project: Project,
    server: Server,
    known: Acknowledged,
    /// Number of completed prompts.
    ended: usize,
    /// Longest time that a child process outlived aye.
    pub orphans: Duration,
    /// Number of starts in which the fault occurred.
    pub faults: usize,
    /// All starts, for the report of a failure.
    log: Vec<String>,
}

fn command(id: &str) -> serde_json::Value {
    json!({"command": format!("echo {id} >> ledger/{id}; echo said {id}")})
}

fn step(number: usize, commands: Commands) -> Answer {
    let answer = Answer::text(&format!("Step {number}."));
    match number {
        1 => answer
            .and_call("1.a", "RunCommand", command("1.a"))
            .and_call("1.w", "WriteFile", json!({"path": "notes.txt", "content": files::notes(1)}))
            .and_call("1.d", "WriteFile", json!({"path": "deep/new/dir.txt", "content": "deep\n", "createDirectories": true})),
        2 => answer.and_call("2.r", "ReadFile", json!({"path": "notes.txt"})).and_call("2.a", "RunCommand", command("2.a")),
        3 => answer.and_call("3.p", "ApplyPatch", json!({"patch": files::PATCH})),
        4 => answer.and_call("4.a", "RunCommand", command("4.a")).and_call("4.b", "RunCommand", command("4.b")).and_call(
            "4.w",
            "WriteFile",
            json!({"path": "notes.txt", "content": files::notes(3)}),
        ),
        5 => answer
            .and_call(
                "5.e",
                "EditFile",
                json!({"path": "other.txt", "edits": [{"oldText": "line 2\n", "newText": "edited 2\n"}]}),
            )
            .and_call("5.m", "Move", json!({"source": "moved.txt", "destination": "target.txt"})),
        6 => {
            let deletes = if commands == Commands::Layered { "" } else { " rm -f spare.txt;" };
            let line = format!("echo 6.a >> ledger/6.a; echo made > made.txt;{deletes} echo said 6.a");
            answer.and_call("6.a", "RunCommand", json!({"command": line}))
        }
        7 => answer.and_call("7.c", "Copy", json!({"source": "target.txt", "destination": "copy.txt"})).and_call(
            "7.x",
            "Delete",
            json!({"path": "useless.txt"}),
        ),
        _ => answer.and_call("8.a", "RunCommand", command("8.a")),
    }
}

/// Returns the last step whose results the model received.
fn done(request: &Request) -> usize {
    let number = |id: &str| id.split('.').next().and_then(|number| number.parse::<usize>().ok());
    request.tool_results().iter().filter_map(|(id, _)| number(id)).max().unwrap_or(0)
}

/// Returns the next response, which depends only on the content of the request.
fn mind(request: &Request, commands: Commands) -> Answer {
    let done = done(request);
    if done == FIRST_STEPS && !request.messages().contains(SECOND) {
        return Answer::text("The first part is done.");
    }
    if done == STEPS { Answer::text("All is done.") } else { step(done + 1, commands) }
}

impl Story {
    pub fn new(commands: Commands) -> Self {
        let server = Server::with_responder(move |request| mind(request, commands));
        let policy = match commands {
            Commands::Bare => POLICY.replace("COMMANDS", "sandbox = \"off\""),
            Commands::Previewed => POLICY.replace("COMMANDS", "preview = \"always\""),
            Commands::Layered => {
                POLICY.replace("requires_approval = false\nCOMMANDS", "requires_approval = true\napprove = \"effects\"")
            }
        };
        let project = files::FIRST
            .iter()
            .fold(Project::with(&server).policy(&policy), |project, (path, content)| project.file(path, content));
        // Effects of the log are not part of the story.
        let project = project
            .env("AYE_LOG", "off")
            .config("[llm]\nmax_retries = 1\nretry_base_ms = 5\n")
            .file("other.txt", &files::other(false, false));
        Self {
            commands,
            project,
            server,
            known: Acknowledged::default(),
            ended: 0,
            orphans: Duration::ZERO,
            faults: 0,
            log: Vec::new(),
        }
    }

    /// Returns the directories in which effects are counted.
    fn roots(&self) -> [PathBuf; 2] {
        [self.project.directory("data"), self.project.path("")]
    }

    /// Starts aye once with the next input of the user. The error explains why processes cannot be traced here.
    pub fn start(&mut self, point: Option<Point>) -> Result<Traced, String> {
        let arguments = self.next();
        let mut command = self.project.command(&["exec", "--json", "--trust"]);
        if self.commands == Commands::Layered {
            command.args(["--mode", "auto-edit"]);
        }
        command.args(arguments);
        let traced = trace(command, &self.roots(), point)?;
        self.log.push(format!("{arguments:?} {point:?} at {:?}: exit {}: {}", traced.hit, traced.code, traced.stderr.trim_end()));
        self.faults += usize::from(traced.hit.is_some());
        Ok(traced)
    }

    /// Returns the number of effects of each start without a fault; `None`, with a message, if processes cannot be
    /// traced here.
    pub fn effects_of_its_starts(mut self) -> Option<Vec<usize>> {
        let mut counts = Vec::new();
        while !self.is_over() {
            let traced = match self.start(None) {
                Ok(traced) => traced,
                Err(why) => {
                    println!("skipped: {why}");
                    return None;
                }
            };
            self.judge(&traced).unwrap_or_else(|why| panic!("{}", self.story(&why)));
            counts.push(traced.effects.len());
        }
        self.check().unwrap_or_else(|why| panic!("{}", self.story(&why)));
        Some(counts)
    }

    /// Checks the state after a start. The error describes the first violation.
    pub fn judge(&mut self, traced: &Traced) -> Result<(), String> {
        let since = Instant::now();
        let gone = wait_until(TIMEOUT, || !files::is_used(&self.project));
        self.orphans = self.orphans.max(since.elapsed());
        if !gone {
            return Err("a process outlives aye".to_owned());
        }
        if traced.stuck {
            return Err("it did not end".to_owned());
        }
        if traced.stderr.contains("panicked at") {
            return Err("it panicked".to_owned());
        }
        self.known.learn(&traced.stdout)?;
        for prompt in [FIRST, SECOND] {
            // A prompt that the model received counts as acknowledged, like one on stdout.
            if self.server.requests().last().is_some_and(|last| last.messages().contains(prompt)) {
                self.known.prompt(prompt);
            }
        }
        files::are_whole(&self.project)?;
        self.known.is_told_to_the_model(&self.server.requests())?;
        // The last message for the user states whether the task is complete.
        let before = self.ended;
        if traced.stderr.contains(texts::NOTHING_TO_CONTINUE) {
            self.ended = self.ended.max(self.known.all_was_done(self.answered())?);
        } else if traced.code == 2 && traced.stderr.contains(texts::NO_SESSION) {
            self.known.all_was_done(0)?;
        }
        self.ended = self.ended.max(self.known.ended());
        if traced.code == 0 && self.ended == before && !self.known.resumed_at_its_end() {
            return Err("it ended well and did not say so".to_owned());
        }
        if traced.code == 0 {
            self.ended = self.ended.max(self.known.prompts());
        }
        Ok(())
    }

    /// Runs the story to its end. The faults occur in successive starts. Checks the state after each start and at the
    /// end.
    pub fn tell(&mut self, points: &[Option<Point>]) -> Result<(), String> {
        let mut points = points.iter().copied();
        let mut calm = 0;
        while !self.is_over() {
            let next = points.next();
            if next.is_none() {
                calm += 1;
            }
            let point = next.flatten();
            if calm > STARTS {
                return Err(self.story("it never comes to its end"));
            }
            let traced = self.start(point)?;
            self.judge(&traced).map_err(|why| self.story(&why))?;
            let expected = [0, 1, 2, 128 + libc::SIGKILL];
            let silent = traced.code == 1 && !traced.says_why();
            if !expected.contains(&traced.code) || silent || point.is_none() && traced.code == 1 {
                return Err(self.story(&format!("exit {}", traced.code)));
            }
        }
        self.check().map_err(|why| self.story(&why))
    }

    pub fn is_over(&self) -> bool {
        self.ended == 2
    }

    /// Returns the next input of the user.
    fn next(&self) -> &'static [&'static str] {
        let (asked, ended) = (self.known.prompts(), self.ended);
        match (asked, self.log.is_empty()) {
            (0, true) => &[FIRST],
            (1, _) if ended == 1 && !self.went_on_in_vain() => &["-c", SECOND],
            _ if self.said_last(texts::NO_SESSION) => &[FIRST],
            (0, _) if self.said_last(texts::NOTHING_TO_CONTINUE) => &["-c", FIRST],
            (1, _) if self.said_last(texts::NOTHING_TO_CONTINUE) => &["-c", SECOND],
            _ => &["-c"],
        }
    }

    fn said_last(&self, words: &str) -> bool {
        self.log.last().is_some_and(|line| line.contains(words))
    }

    /// Returns whether the second prompt was sent without a visible result, so that its state has to be queried.
    fn went_on_in_vain(&self) -> bool {
        self.log.last().is_some_and(|line| line.starts_with(&format!("{:?}", ["-c", SECOND])))
    }

    /// Returns the number of prompts that the model has completed.
    fn answered(&self) -> usize {
        let requests = self.server.requests();
        let Some(last) = requests.last() else { return 0 };
        match (done(last), last.messages().contains(SECOND)) {
            (STEPS, true) => 2,
            (FIRST_STEPS, false) | (_, true) => 1,
            _ => 0,
        }
    }

    /// Checks the final state.
    fn check(&self) -> Result<(), String> {
        let requests = self.server.requests();
        let last = requests.last().ok_or("nothing was ever asked")?;
        let told: BTreeMap<String, String> = last.tool_results().into_iter().collect();
        for prompt in [FIRST, SECOND] {
            let times = last.messages().matches(prompt).count();
            if times != 1 {
                return Err(format!("`{prompt}` stands {times} times in what the model is told"));
            }
        }
        let is_layered = self.commands == Commands::Layered;
        files::agree_with(&self.project, &told, !is_layered)?;
        if is_layered {
            files::commands_are_known(&told)?;
        }
        if files::previews(&self.project) > 0 {
            // The recovered outcome of a call is stored until the next start writes it to the journal.
            self.project.aye(&["exec", "--trust", "-c", "one more thing"]).exits(0);
        }
        files::are_all_known(&self.project, &told, &self.log.join("\n"))?;
        let store =
            rusqlite::Connection::open(self.project.directory("data").join("aye.db")).map_err(|error| error.to_string())?;
        let verdict: String =
            store.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(|error| error.to_string())?;
        if verdict == "ok" { Ok(()) } else { Err(verdict) }
    }

    /// Returns a report with this error, all starts so far, and the results that the model received.
    fn story(&self, why: &str) -> String {
        let told = self.server.requests().last().map(Request::tool_results).unwrap_or_default();
        format!("{why}\n{}\nthe model was told {told:#?}", self.log.join("\n"))
    }
}

const POLICY: &str = r#"
schema_version = 1
bundle_version = "test"

[capabilities."File.Read"]
allowed_paths = ["${workspace}"]

[capabilities."File.Write"]
allowed_paths = ["${workspace}"]
requires_approval = false

[capabilities."File.Delete"]
allowed_paths = ["${workspace}"]
requires_approval = false

[capabilities."Shell.Exec"]
requires_approval = false
COMMANDS
"#;
