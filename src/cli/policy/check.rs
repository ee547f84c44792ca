//! `aye policy check`: judges tool calls read from stdin, without running them.

use super::server_tools::ServerTools;
use crate::headless::lines;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::policy::{Enforcer, Explanation, Sandbox, guard};
use crate::protocol::{CallArguments, Mode};
use crate::text::{BoundedLine, LineSplitter};
use crate::tools::Toolset;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};

/// Maximum size of a line in bytes. A longer call could never be run.
const LINE_BYTES: usize = 64 << 20;

#[derive(Serialize)]
struct Answer<'a> {
    /// ID of the call, exactly as received.
    id: Option<&'a RawValue>,
    #[serde(flatten)]
    explanation: Explanation,
}

/// Prints a verdict for every line, even if it is invalid. The exit code does not depend on the verdicts.
pub(crate) fn run(app: &AppContext, common: &Common) -> Result<Exit, CliError> {
    let policy = super::load_policy(app, common)?;
    let app = &super::with_tools(app, common);
    let enforcer = app.enforcer(&policy, Sandbox::Present, common.mode.unwrap_or(Mode::Ask));
    let toolset = super::toolset(app, &enforcer);
    let servers =
        ServerTools::from_config(app, Some(&ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust)));
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut splitter = LineSplitter::new(LINE_BYTES);
    let mut write = |line: &BoundedLine, more: bool| {
        let written = lines::write(&mut out, &answer(line, &enforcer, &toolset, &servers));
        // Flush if there is no more input, because the caller may wait for this verdict.
        if more { written } else { written.and_then(|()| out.flush()) }
    };
    loop {
        let found = match input.fill_buf() {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(CliError::usage(format!("cannot read stdin: {error}"))),
        };
        let length = found.len();
        let mut rest = found;
        while !rest.is_empty() {
            let Some(line) = splitter.take_line(&mut rest) else { break };
            if write(&line, !rest.is_empty()).is_err() {
                return Ok(Exit::Completed);
            }
        }
        if length == 0 {
            break;
        }
        input.consume(length);
    }
    if let Some(line) = splitter.finish() {
        let _ = write(&line, false);
    }
    Ok(Exit::Completed)
}

fn answer<'a>(line: &'a BoundedLine, enforcer: &Enforcer, toolset: &Toolset, servers: &ServerTools) -> Answer<'a> {
    let unreadable = |reason: String| Answer { id: None, explanation: Explanation::unreadable(reason) };
    let BoundedLine::Whole(line) = line else { return unreadable(format!("the line is longer than {LINE_BYTES} bytes")) };
    if line.trim_ascii().is_empty() {
        return unreadable(format!("the line is empty; {EXPECTED}"));
    }
    match serde_json::from_slice::<BTreeMap<String, &RawValue>>(line) {
        Ok(request) => {
            let explanation = explain_request(&request, enforcer, toolset, servers);
            Answer { id: request.get("id").copied(), explanation }
        }
        Err(error) => unreadable(format!("the line is not a JSON object ({error}); {EXPECTED}")),
    }
}

const EXPECTED: &str = "expected {\"tool\": NAME, \"arguments\": {…}}";

fn explain_request(
    request: &BTreeMap<String, &RawValue>,
    enforcer: &Enforcer,
    toolset: &Toolset,
    servers: &ServerTools,
) -> Explanation {
    let tool = request.get("tool").and_then(|tool| serde_json::from_str::<String>(tool.get()).ok());
    let (Some(tool), Some(arguments)) = (tool, request.get("arguments")) else {
        return Explanation::unreadable(EXPECTED.to_owned());
    };
    // A panic on one line must not affect the next line.
    match guard::catch_panic(|| super::judge_call(&tool, &CallArguments::parse(arguments.get()), enforcer, toolset, servers)) {
        Some(Ok((_, told))) => told,
        Some(Err(why)) => Explanation::unreadable(why),
        None => Explanation::unreadable(guard::FAILED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Bundle, Context, Layer, Scope};
    use std::path::PathBuf;

    /// A line that makes the command parser panic in test builds.
    const FAULTY: &str = "aye-test-faulty-line";

    #[test]
    fn a_line_whose_check_panics_is_denied_and_the_next_line_is_evaluated() {
        let context = Context {
            roots: vec![PathBuf::from("/")],
            home: PathBuf::from("/home/me"),
            mode: Mode::Ask,
            sandbox: Sandbox::Present,
            own: Vec::new(),
            skills: Vec::new(),
        };
        let text = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nallowed_commands = [\"ls\"]\n";
        let enforcer = Enforcer::new(vec![Layer::new(Scope::User, Bundle::parse(text, "policy.toml").unwrap())], context);
        let bench = crate::tools::tests::Bench::new();
        let servers = ServerTools::empty();
        let said = |command: &str, id: u32| {
            let line = format!("{{\"id\": {id}, \"tool\": \"RunCommand\", \"arguments\": {{\"command\": \"{command}\"}}}}");
            let line = BoundedLine::Whole(line.into_bytes());
            let answer = answer(&line, &enforcer, &bench.toolset(), &servers);
            serde_json::to_value(&answer).unwrap()
        };
        let broken = said(FAULTY, 1);
        assert_eq!((&broken["id"], &broken["verdict"]), (&1.into(), &"deny".into()), "{broken}");
        assert_eq!(broken["reason"], guard::FAILED);
        assert_eq!(said("ls", 2)["id"], 2);
        assert_ne!(said("ls", 2)["reason"], guard::FAILED);
    }
}
