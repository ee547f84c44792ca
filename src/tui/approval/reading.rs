//! Something to read in front of a question: which rules have a say, or what a project brings. It decides nothing.

use super::{Act, Body, Choice, Height, Panel, Question, choice, line};
use crate::protocol::{Approval, RuleOrigin};
use crate::tui::front::BroughtFile;
use crate::tui::guard::Confirm;
use std::fmt::Write as _;

/// Pages, and which of them is open.
#[derive(Debug)]
pub struct Reading {
    pages: Vec<Page>,
    at: usize,
}

#[derive(Debug, Clone)]
struct Page {
    title: String,
    about: &'static str,
    text: String,
}

impl Reading {
    /// The facts of `aye policy explain`, as they were when it asked.
    pub fn rules(approval: &Approval) -> Self {
        let mut text = String::new();
        let mut told: Vec<&str> = Vec::new();
        for (at, part) in approval.parts.iter().enumerate() {
            let critical = if part.critical { ", critical" } else { "" };
            let (verdict, risk) = (part.verdict.as_str(), part.risk.as_str());
            let _ = write!(text, "{:>2}  {}\n    {verdict} · {risk} risk{critical} · ", at + 1, line(&part.text));
            let _ = writeln!(text, "{}\n    decided by {}\n", line(&part.reason), whose(&part.rule));
            told.push(&part.rule);
        }
        if approval.parts.is_empty() {
            let risk = approval.risk_level.as_str();
            let _ = writeln!(text, "ask · {risk} risk · {}\ndecided by {}\n", line(&approval.reason), whose(&approval.rule));
        } else if !told.contains(&approval.rule.as_str()) {
            let _ = writeln!(text, "all of it: {}\ndecided by {}\n", line(&approval.reason), whose(&approval.rule));
        }
        for RuleOrigin { rule, place, source, first } in &approval.origins {
            let _ = writeln!(text, "{}\n{}", line(rule), line(place));
            for (at, row) in source.iter().enumerate() {
                let _ = writeln!(text, "  {:>4}  {row}", first + at);
            }
            text.push('\n');
        }
        let about = "strictest of all parts; deny, then ask, then allow";
        let rules = Page { title: "Which rules have a say".to_owned(), about, text: text.trim_end().to_owned() };
        let printed = approval.effects.iter().map(|effects| Page {
            title: "What it printed".to_owned(),
            about: "in its copy; the model sees it after a yes",
            text: effects.output.trim_end().to_owned(),
        });
        Self { pages: printed.filter(|page| !page.text.is_empty()).chain([rules]).collect(), at: 0 }
    }

    /// The files a project brings, one page each.
    pub fn files(files: &[BroughtFile]) -> Self {
        let pages = files.iter().map(|file| {
            let mut text = file.text.clone();
            if text.trim().is_empty() {
                "(empty)".clone_into(&mut text);
            }
            if file.is_cut {
                text.push_str("\n\n(the rest is not shown here; look at the file itself)");
            }
            Page { title: line(&file.name), about: "as it was read just now; nothing of it takes effect yet", text }
        });
        Self { pages: pages.collect(), at: 0 }
    }

    pub fn panel(self) -> Option<Panel> {
        let page = self.pages.get(self.at)?.clone();
        let title = match self.pages.len() {
            1 => page.title,
            count => format!("{} · {} of {count}", page.title, self.at + 1),
        };
        let choices = self.choices();
        let panel = Panel::new(Question::Reading(self), title, page.about.to_owned(), choices, Body::words(page.text));
        Some(Panel { height: Height::Full, ..panel })
    }

    /// The next page, around the end.
    pub fn turned(mut self) -> Option<Panel> {
        self.at = (self.at + 1) % self.pages.len().max(1);
        self.panel()
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices = vec![choice('b', Confirm::Letter, Act::Back, "back to the question".to_owned(), "back")];
        if let Some(next) = self.pages.get((self.at + 1) % self.pages.len()).filter(|_| self.pages.len() > 1) {
            choices.insert(0, choice('o', Confirm::Letter, Act::Look, format!("open {}", next.title), "next"));
        }
        choices
    }
}

fn whose(rule: &str) -> String {
    match rule {
        "built-in" => "the built-in policy".to_owned(),
        "session" => "your yes of this session".to_owned(),
        other => line(other),
    }
}
