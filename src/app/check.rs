//! `aye policy check`: what the policy would say to each action on stdin; nothing is done.

use super::cli::Common;
use super::exit::Exit;
use super::place::Place;
use super::session;
use super::trouble::Trouble;
use crate::policy::{Enforcer, Explanation, Sandbox};
use crate::protocol::{Arguments, Mode};
use crate::tools::{self, Settings};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{BufRead, Write};

#[derive(Serialize)]
struct Answer {
    id: Value,
    #[serde(flatten)]
    explanation: Explanation,
}

/// One answer for each line, whatever it is; the exit code does not depend on the verdicts.
pub fn run(place: &Place, common: &Common) -> Result<Exit, Trouble> {
    let policy = place.policy(common.policy.as_deref())?;
    let enforcer = place.enforcer(&policy, Sandbox::Present, Mode::Ask);
    let settings = session::tool_settings(place, &enforcer);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.map_err(|error| Trouble::usage(format!("cannot read stdin: {error}")))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = answer(&line, &enforcer, &settings);
        let written = serde_json::to_writer(&mut out, &answer).map_err(std::io::Error::other).and_then(|()| out.write_all(b"\n"));
        if written.is_err() {
            return Ok(Exit::Completed);
        }
    }
    let _ = out.flush();
    Ok(Exit::Completed)
}

fn answer(line: &[u8], enforcer: &Enforcer, settings: &Settings) -> Answer {
    let request: Map<String, Value> = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            let explanation = Explanation::unreadable(format!("the line is not a JSON object: {error}"));
            return Answer { id: Value::Null, explanation };
        }
    };
    let id = request.get("id").cloned().unwrap_or_default();
    let explanation = match (request.get("tool"), request.get("arguments")) {
        (Some(Value::String(tool)), Some(Value::Object(arguments))) => {
            match tools::actions_for(tool, &Arguments::Object(arguments.clone()), settings) {
                Ok(actions) => enforcer.explain(&actions, jiff::Timestamp::now()),
                Err(error) => Explanation::unreadable(error.message),
            }
        }
        _ => Explanation::unreadable("expected {\"tool\": NAME, \"arguments\": {…}}".to_owned()),
    };
    Answer { id, explanation }
}
