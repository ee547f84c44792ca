//! The `Grep` tool, which finds the lines that match an expression, in a file or in a directory tree.

use super::encoded::Encodings;
use super::file_search::{ContentKind, FileSearch, SearchContext, Skip};
use super::grep_answer::{Hits, MatchCount, answer};
use super::grep_arguments::{self, GrepMode, GrepRequest};
use super::skipped::SkippedPlaces;
use super::top_k::MergedResults;
use super::walk::{Depth, WalkScope, relative_to, walk};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Place, Target, ToolError};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolOutput, blocking};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, not_found_error, open_error, special_file_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use ignore::DirEntry;
use std::sync::Arc;

pub(in crate::tools) use super::grep_arguments::GrepArguments;

pub(in crate::tools) struct Grep;

pub(in crate::tools) struct Work {
    target: Target,
    request: GrepRequest,
}

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const ALIASES: &'static [Alias<GrepArguments>] = &[
        Alias::new::<grep_arguments::GrepAliasArguments>("grep"),
        Alias::with_same_arguments("TextSearch"),
        Alias::with_same_arguments("search"),
        Alias::with_same_arguments("grep_search"),
        Alias::with_same_arguments("grep_files"),
        Alias::with_same_arguments("search_file_content"),
        Alias::with_same_arguments("search_files"),
        Alias::with_same_arguments("ripgrep"),
        Alias::with_same_arguments("rg"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Grep.md");
    type Arguments = GrepArguments;
    type Work = Work;

    fn actions(arguments: &GrepArguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let path = arguments.path.as_deref().unwrap_or(".");
        Ok(vec![Action::Read { target: paths.source("path", path, ExpectedKind::Directory)? }])
    }

    fn draft(arguments: GrepArguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let target =
            Paths::on_disk(settings).source("path", arguments.path.as_deref().unwrap_or("."), ExpectedKind::Directory)?;
        Ok(CallDraft::reads(
            format!("Grep {} in {}", arguments.pattern, target.given),
            target.clone(),
            Work { target, request: GrepRequest::new(arguments)? },
        ))
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || Ok(search(&work, &settings, &context)?))
    }
}

fn search(work: &Work, settings: &ToolSettings, context: &RunContext) -> Result<ToolOutput, ToolError> {
    let Work { target, request } = work;
    let (kill, max_bytes) = (&context.kill, context.max_bytes);
    let hits = MergedResults::new(Hits::new(request));
    let counted = MatchCount::default();
    let encodings = Encodings::new(settings);
    let common = SearchContext { request, redactor: &settings.redactor, kill, counted: &counted, encodings: &encodings };
    let searcher = || FileSearch::new(&common, hits.thread_results(Hits::new(request)));
    let unread = SkippedPlaces::new();
    match target.place {
        Place::Missing => return Err(not_found_error(target, settings)),
        Place::Special => return Err(special_file_error(target)),
        Place::File { .. } => {
            let content = searcher().search(&target.real).map_err(|skip| skip_error(&skip, target))?;
            if kill.is_cancelled() {
                return Err(ToolError::new(ErrorCode::Cancelled, "the search was stopped before it finished"));
            }
            let hits = hits.into_inner();
            let how = "RunCommand can, for example with `grep -a`";
            return match content {
                ContentKind::Binary => {
                    Err(invalid(format!("`{}` is a binary file, which Grep does not search; {how}", target.given)))
                }
                ContentKind::TextThenBinary => {
                    let note = format!("\n[not searched after the first NUL byte: a binary file; {how}]");
                    Ok(format_hits(hits, work, settings, max_bytes)?.with_note(&note))
                }
                ContentKind::Text => format_hits(hits, work, settings, max_bytes),
            };
        }
        Place::Directory => {
            let reach = WalkScope { depth: Depth::All, hidden: request.hidden, ignored: request.ignored };
            walk(target, settings, reach, &unread, kill, || {
                let mut files = searcher();
                let (unread, all) = (&unread, request.which.is_all());
                move |entry: &DirEntry| {
                    let path = entry.path();
                    if !entry.file_type().is_some_and(|kind| kind.is_file())
                        || !(all || request.which.matches(relative_to(path, &target.real)))
                    {
                        return;
                    }
                    match files.search(path) {
                        Ok(ContentKind::Text | ContentKind::Binary) => {}
                        Ok(ContentKind::TextThenBinary) => unread.add(path, "binary after the first NUL byte".to_owned()),
                        Err(Skip::Io(error)) => unread.add_io(path, &error),
                        Err(skip) => unread.add(path, skip.reason()),
                    }
                }
            })?;
        }
    }
    Ok(format_hits(hits.into_inner(), work, settings, max_bytes)?.with_note(&unread.note(settings)))
}

fn skip_error(skip: &Skip, target: &Target) -> ToolError {
    match skip {
        Skip::LongLine | Skip::Large => invalid(format!(
            "`{}` has {}, which Grep does not search; RunCommand can, for example with `grep -o`",
            target.given,
            skip.reason()
        )),
        Skip::Io(error) => open_error(target, error),
    }
}

fn format_hits(hits: Hits, work: &Work, settings: &ToolSettings, max_bytes: usize) -> Result<ToolOutput, ToolError> {
    let searched = hits.searched;
    Ok(match answer(hits, &work.request, settings, max_bytes)? {
        Some(told) => told,
        None => no_matches(work, searched).into(),
    })
}

/// Describes a search that had no results.
fn no_matches(work: &Work, searched: u64) -> String {
    let Work { target, request } = work;
    let within =
        if request.mode == GrepMode::FilesWithoutMatch { "every file has a line that matches" } else { "no line matches" };
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
