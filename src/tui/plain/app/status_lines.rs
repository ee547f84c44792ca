//! Output of the commands that show status, help and keys.

use super::{LineApp, question};
use crate::text;
use crate::tui::keymap::Focus;
use crate::tui::{format, layers, slash, status, update};
use std::io::{self, Write};

/// Commands that only exist in line mode or differ there, each with its help text.
const COMMANDS: &[(&str, &str)] = &[
    ("/status", "show the running task, the model and the policy"),
    ("/answer", "return to the approval or question that you postponed"),
    ("/draft", "show the draft; /send sends it, /drop discards it"),
    ("/retry", "retry the pending request now"),
    ("/unsaved", "continue without saving while saving fails"),
    ("/rewind 3", "rewind to before prompt 3; /rewind lists the prompts"),
];

impl<W: Write> LineApp<W> {
    /// Prints how the user can continue after a save failure, once per failure. The failure itself has already been
    /// printed.
    pub(super) fn print_save_state(&mut self) -> io::Result<()> {
        let since = self.model.info.saving.stopped.as_ref().map(|(_, since)| *since);
        if since.is_some() && since != self.unsaved {
            self.paper.write_text(
                "Type /continue to try saving again, or /unsaved to continue without saving (a crash then loses unsaved work).",
            )?;
        }
        self.unsaved = since;
        Ok(())
    }

    pub(super) fn servers(&mut self) -> io::Result<()> {
        let rows: Vec<String> = self.model.servers.statuses.iter().flat_map(layers::server_details).collect();
        self.paper.write_text("MCP servers:")?;
        rows.iter().try_for_each(|row| self.paper.write(row))
    }

    /// Sets the current form field from a line of input, or postpones the form.
    pub(super) fn fill(&mut self, line: &str) -> io::Result<()> {
        let later = line.trim().eq_ignore_ascii_case(question::LATER);
        match update::fill_line(&mut self.model, if later { None } else { Some(line) }) {
            Ok(()) => {
                self.asked = None;
                Ok(())
            }
            Err(why) => self.paper.write_text(&format!("Not accepted: {why}.")),
        }
    }

    pub(super) fn status(&mut self, now: u64) -> io::Result<()> {
        let header = &self.model.info.header;
        let model = if header.model.is_empty() { "no model" } else { &header.model };
        let effort = header.effort.map(|effort| format!(", effort {}", effort.as_str())).unwrap_or_default();
        let mut lines = vec![format!("Model: {model}{effort}")];
        if let Some(name) = header.summary_model.as_ref().filter(|name| **name != header.model) {
            lines.push(format!("Summaries: {name}"));
        }
        if let Some(window) = self.model.context_limit() {
            let used = self.model.info.tally.context_tokens;
            lines.push(format!("Context: {used} of {window} tokens, {} percent", used.saturating_mul(100) / window.max(1)));
        }
        if let Some(cost) = self.model.info.tally.cost_usd {
            lines.push(format!("Session cost: {}", format::dollars(cost)));
        }
        lines.push(format!("Mode: {}; policy: {}; {}", header.mode.as_str(), header.policy, header.sandbox));
        let branch = header.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        lines.push(format!("Directory: {}{branch}", self.model.options.cwd));
        for (what, count) in
            [("Approvals and questions waiting", self.model.dialogs.len()), ("Messages queued", self.model.task.waiting.len())]
        {
            if count > 0 {
                lines.push(format!("{what}: {count}"));
            }
        }
        let task = match (&self.model.task.paused, status::activity(&self.model, now)) {
            (Some(paused), _) => format!("Task: {}", paused.ways.first().map_or("paused", String::as_str)),
            (None, Some((_, words, _))) => format!("Task: {words}"),
            (None, None) if self.model.is_running() => "Task: waiting for your answer".to_owned(),
            (None, None) => "Task: none running".to_owned(),
        };
        lines.push(task);
        lines.iter().try_for_each(|line| self.paper.write_text(&text::clean(line)))
    }

    /// Prints all commands or, if `words` is not empty, the commands and keys that match it.
    pub(super) fn help(&mut self, words: &str) -> io::Result<()> {
        if !words.is_empty() {
            return self.keys(words);
        }
        self.paper.write_text(
            "Each line is sent as a message; end it with a backslash to add another line. ctrl+c stops the task, ctrl+d quits.",
        )?;
        self.paper
            .write_text("To answer an approval or a question, type one of its words and press Enter, after it is shown.")?;
        let own = |name: &str| !COMMANDS.iter().any(|(other, _)| *other == name);
        for (name, words) in COMMANDS.iter().chain(slash::COMMANDS.iter().filter(|(name, _)| own(name))) {
            self.paper.write_text(&format!("{name}: {words}"))?;
        }
        self.paper.write_text("Type /help WORD to search, or /keys to list the keys of the full-screen UI.")
    }

    /// Prints the key bindings of the full-screen UI or, if `words` is not empty, the keys and commands that match it.
    pub(super) fn keys(&mut self, words: &str) -> io::Result<()> {
        let own = |name: &str| !COMMANDS.iter().any(|(other, _)| *other == name);
        let commands: Vec<_> = COMMANDS.iter().chain(slash::COMMANDS.iter().filter(|(name, _)| own(name))).copied().collect();
        let commands = if words.is_empty() { &[] } else { commands.as_slice() };
        let place = layers::key_file_location(&self.model.options.keys);
        let sections = layers::help_sections(&self.model.keymap, Focus::Composer, commands, &place, words);
        if sections.is_empty() {
            return self.paper.write_text(&format!("No matches for: {}", text::reveal(words)));
        }
        for section in sections {
            self.paper.write_text(&format!("{}:", section.head))?;
            for (name, does) in section.entries {
                self.paper.write_text(&format!("{name}: {does}"))?;
            }
        }
        Ok(())
    }
}
