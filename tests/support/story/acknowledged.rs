//! Facts that aye has acknowledged on stdout and must never contradict.

use crate::support::server::Request;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// End of a call, as reported.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    status: String,
    text: String,
}

#[derive(Default)]
pub(super) struct Acknowledged {
    prompts: Vec<String>,
    /// IDs of the tasks that were reported as completed.
    ended: HashSet<String>,
    results: BTreeMap<String, Outcome>,
    /// Whether the last start began no task and no step.
    at_its_end: bool,
    /// Results of the calls in the last checked request, by call ID, and the number of checked requests.
    told: BTreeMap<String, String>,
    seen: usize,
}

impl Acknowledged {
    pub fn prompts(&self) -> usize {
        self.prompts.len()
    }

    pub fn ended(&self) -> usize {
        self.ended.len()
    }

    pub fn resumed_at_its_end(&self) -> bool {
        self.at_its_end
    }

    /// Records that a prompt was accepted.
    pub fn prompt(&mut self, prompt: &str) {
        if !self.prompts.iter().any(|known| known == prompt) {
            self.prompts.push(prompt.to_owned());
        }
    }

    /// Reads the events of one start and ignores a truncated last line. Fails if a call is reported with two different
    /// outcomes.
    pub fn learn(&mut self, stdout: &str) -> Result<(), String> {
        let whole = &stdout[..stdout.rfind('\n').map_or(0, |end| end + 1)];
        let mut began = false;
        for line in whole.lines() {
            let event: Value = serde_json::from_str(line).map_err(|error| format!("{error} in {line}"))?;
            let payload = &event["payload"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            match event["eventType"].as_str().unwrap_or_default() {
                "task_started" => {
                    began = true;
                    self.prompt(payload["prompt"].as_str().unwrap_or_default());
                }
                "step_started" => began = true,
                "task_completed" => {
                    self.ended.insert(text(&event["taskId"]));
                }
                "tool_completed" => {
                    let outcome = Outcome { status: text(&payload["status"]), text: text(&payload["outputText"]) };
                    let id = text(&payload["toolCallId"]);
                    if let Some(before) = self.results.get(&id)
                        && *before != outcome
                    {
                        return Err(format!("{id} was said to have ended in two ways: {before:?} and {outcome:?}"));
                    }
                    self.results.insert(id, outcome);
                }
                _ => {}
            }
        }
        self.at_its_end = !began;
        Ok(())
    }

    /// Checks the report that nothing is left to do. Returns the number of acknowledged prompts, which are then
    /// complete.
    pub fn all_was_done(&self, answered: usize) -> Result<usize, String> {
        let prompts = self.prompts();
        if prompts > answered || answered == 0 && !self.results.is_empty() {
            return Err(format!("{prompts} prompts were taken, {answered} were answered, and aye knows of nothing that is open"));
        }
        Ok(prompts)
    }

    /// Checks that each new request contains all earlier tool results unchanged, and that the last one contains the
    /// earlier prompts and the reported outcomes.
    pub fn is_told_to_the_model(&mut self, requests: &[Request]) -> Result<(), String> {
        for request in &requests[self.seen..] {
            let told: BTreeMap<String, String> = request.tool_results().into_iter().collect();
            for (id, text) in &self.told {
                if told.get(id) != Some(text) {
                    return Err(format!("the model was told of {id}: {text:?}, and later {:?}", told.get(id)));
                }
            }
            self.told = told;
        }
        self.seen = requests.len();
        for prompt in &self.prompts {
            let is_last = self.prompts.last() == Some(prompt);
            if !is_last && requests.last().is_some_and(|last| !last.messages().contains(prompt.as_str())) {
                return Err(format!("the model is not told any more of the prompt `{prompt}`"));
            }
        }
        for (id, outcome) in &self.results {
            if let Some(text) = self.told.get(id)
                && outcome.status == "succeeded"
                && !text.contains(outcome.text.trim_end())
            {
                return Err(format!("{id} was said to be {outcome:?}, and the model was told {text:?}"));
            }
        }
        Ok(())
    }
}
