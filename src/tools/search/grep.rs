//! Grep: finds the lines that match an expression, in a file or a tree.

use super::encoded::Encodings;
use super::file_search::{Common, Content, FileSearch, Skip};
use super::grep_answer::{Counted, Hits, answer};
use super::grep_arguments::{self, Mode, Request};
use super::skipped::SkippedPlaces;
use super::top_k::Shared;
use super::walk::{Depth, Reach, below, walk};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Place, Target, ToolError};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolOutput, blocking};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, not_found, open_error, special};
use crate::tools::settings::Settings;
use crate::tools::tool::Tool;
use ignore::DirEntry;
use std::sync::Arc;

pub(in crate::tools) use super::grep_arguments::Arguments;

pub(in crate::tools) struct Grep;

pub(in crate::tools) struct Work {
    target: Target,
    request: Request,
}

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::new::<grep_arguments::Grep>("grep"),
        Alias::same("TextSearch"),
        Alias::same("search"),
        Alias::same("grep_search"),
        Alias::same("grep_files"),
        Alias::same("search_file_content"),
        Alias::same("search_files"),
        Alias::same("ripgrep"),
        Alias::same("rg"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Grep.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let path = arguments.path.as_deref().unwrap_or(".");
        Ok(vec![Action::Read { target: paths.source("path", path, ExpectedKind::Directory)? }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<CallDraft<Work>, ToolError> {
        let target =
            Paths::on_disk(settings).source("path", arguments.path.as_deref().unwrap_or("."), ExpectedKind::Directory)?;
        Ok(CallDraft::reads(
            format!("Grep {} in {}", arguments.pattern, target.given),
            target.clone(),
            Work { target, request: Request::new(arguments)? },
        ))
    }

    fn run(work: Work, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || Ok(search(&work, &settings, &context)?))
    }
}

fn search(work: &Work, settings: &Settings, context: &RunContext) -> Result<ToolOutput, ToolError> {
    let Work { target, request } = work;
    let (kill, most_bytes) = (&context.kill, context.most_bytes);
    let hits = Shared::new(Hits::new(request));
    let counted = Counted::default();
    let encodings = Encodings::new(settings);
    let common = Common { request, redactor: &settings.redactor, kill, counted: &counted, encodings: &encodings };
    let searcher = || FileSearch::new(&common, hits.part(Hits::new(request)));
    let unread = SkippedPlaces::new();
    match target.place {
        Place::Missing => return Err(not_found(target, settings)),
        Place::Special => return Err(special(target)),
        Place::File { .. } => {
            let content = searcher().search(&target.real).map_err(|skip| unsearched(&skip, target))?;
            if kill.is_cancelled() {
                return Err(ToolError::new(ErrorCode::Cancelled, "the search was stopped before it finished"));
            }
            let hits = hits.into_inner();
            let how = "RunCommand can, for example with `grep -a`";
            return match content {
                Content::Binary => {
                    Err(invalid(format!("`{}` is a binary file, which Grep does not search; {how}", target.given)))
                }
                Content::TextThenBinary => {
                    let note = format!("\n[not searched after the first NUL byte: a binary file; {how}]");
                    Ok(format_hits(hits, work, settings, most_bytes)?.and(&note))
                }
                Content::Text => format_hits(hits, work, settings, most_bytes),
            };
        }
        Place::Directory => {
            let reach = Reach { depth: Depth::All, hidden: request.hidden, ignored: request.ignored };
            walk(target, settings, reach, &unread, kill, || {
                let mut files = searcher();
                let (unread, all) = (&unread, request.which.is_all());
                move |entry: &DirEntry| {
                    let path = entry.path();
                    if !entry.file_type().is_some_and(|kind| kind.is_file())
                        || !(all || request.which.takes(below(path, &target.real)))
                    {
                        return;
                    }
                    match files.search(path) {
                        Ok(Content::Text | Content::Binary) => {}
                        Ok(Content::TextThenBinary) => unread.add(path, "binary after the first NUL byte".to_owned()),
                        Err(Skip::Io(error)) => unread.add_io(path, &error),
                        Err(skip) => unread.add(path, skip.reason()),
                    }
                }
            })?;
        }
    }
    Ok(format_hits(hits.into_inner(), work, settings, most_bytes)?.and(&unread.note(settings)))
}

fn unsearched(skip: &Skip, target: &Target) -> ToolError {
    match skip {
        Skip::LongLine | Skip::Large => invalid(format!(
            "`{}` has {}, which Grep does not search; RunCommand can, for example with `grep -o`",
            target.given,
            skip.reason()
        )),
        Skip::Io(error) => open_error(target, error),
    }
}

fn format_hits(hits: Hits, work: &Work, settings: &Settings, most_bytes: usize) -> Result<ToolOutput, ToolError> {
    let searched = hits.searched;
    Ok(match answer(hits, &work.request, settings, most_bytes)? {
        Some(told) => told,
        None => nothing(work, searched).into(),
    })
}

/// Describes a search without results.
fn nothing(work: &Work, searched: u64) -> String {
    let Work { target, request } = work;
    let within = if request.mode == Mode::FilesWithoutMatch { "every file has a line that matches" } else { "no line matches" };
    let nothing = format!("{within} `{}` in `{}`", request.pattern, target.given);
    match target.place {
        Place::Directory if searched == 0 && !request.which.is_all() => {
            format!("{nothing}: no file there matches `glob` and `type`; widen them (ignored and binary files are not searched)")
        }
        Place::Directory if request.ignored => format!("{nothing} (binary files are not searched)"),
        Place::Directory => format!("{nothing} (ignored and binary files are not searched; `noIgnore` searches ignored ones)"),
        Place::File { .. } | Place::Missing | Place::Special => nothing,
    }
}
