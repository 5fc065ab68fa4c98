//! Generated from the command line's definition: completions, man pages, the Markdown reference.

use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap_complete::Shell;
use fullpipe_cc::registry::{Kind, entries};
use fullpipe_grounds::{Far, GROUNDS};
use fullpipe_metrics as metrics;
use fullpipe_metrics::wrapped;
use fullpipe_results::agreement::MEASURES;
use fullpipe_scenario::{Scenario, builtin, flow_keys};

use crate::args::{Args, Completions, Man};
use crate::exit::{Exit, Failure};
use crate::output;

/// `fullpipe completions`.
pub fn completions(args: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut knowing(), "fullpipe", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match args.shell {
        Shell::Bash => script.into_owned() + &beyond_words(),
        Shell::Zsh => with_names_of_zsh(&script),
        Shell::Fish => script.into_owned() + NAMES_OF_FISH,
        _ => script.into_owned(),
    };
    output::data(&script)?;
    Ok(Exit::Ok)
}

/// The script of zsh, whose arguments that are names of a result ask the program for them: what
/// offers files for such an argument is replaced.
fn with_names_of_zsh(script: &str) -> String {
    let mut script = script.to_owned();
    for (flag, help, ask) in [
        (
            "flow",
            "Only this flow; qlog and xplot hold one",
            "export --to csv --flow",
        ),
        (
            "of",
            "Flow, traffic or link that is drawn",
            "figure matrix --of",
        ),
    ] {
        let argument = format!("--{flag}=[{help}]:NAME:");
        let names = format!("{argument} _fullpipe_names {ask}");
        script = script.replace(&format!("{argument}_default"), &names);
    }
    // Defined before the script's last lines call its main function.
    let last = script
        .rfind("\nif [ \"$funcstack[1]\"")
        .unwrap_or(script.len());
    script.insert_str(last, NAMES_OF_ZSH);
    script
}

const NAMES_OF_ZSH: &str = r#"
# Names in the result or trace of a line: asked for one without a name, the program says which
# there are.
_fullpipe_names() {
    local command="$1" last="" of="" word said
    shift
    for word in "${(@Q)words[2,-1]}"; do
        [[ -z "$of" && "$word" != -* && "$last" != -* && -e "$word" ]] && of="$word"
        last="$word"
    done
    [[ -z "$of" ]] && return 1
    said="$(_call_program names fullpipe $command ${(q)of} $* "''" 2>&1 >/dev/null)"
    [[ "$said" == *"there are"* ]] || return 1
    said="${${said##*there are}#:}"
    compadd -- ${=said//,/ }
}
"#;

const NAMES_OF_FISH: &str = r#"
# Names in the result or trace of a line: asked for one without a name, the program says which
# there are.
function __fish_fullpipe_names
    set -l words (commandline -opc)
    set -l of
    set -l seen
    set -l last -
    for word in $words
        if test -n "$seen" -a -z "$of" -a -e "$word"
            and not string match -q -- '-*' $word $last
            set of $word
        end
        test "$word" = "$argv[1]"; and set seen yes
        set last $word
    end
    test -n "$of"; or return
    set -l said ($words[1] $argv[1] $of $argv[2..-1] "" 2>&1 >/dev/null | string join ' ')
    string match -q '*there are*' -- "$said"; or return
    string replace -r '.*there are:?' '' -- "$said" | string split , | string trim
end

complete -c fullpipe -n "__fish_fullpipe_using_subcommand export" -l flow -x -a "(__fish_fullpipe_names export --to csv --flow)"
complete -c fullpipe -n "__fish_fullpipe_using_subcommand figure" -l of -x -a "(__fish_fullpipe_names figure matrix --of)"
"#;

/// What the generated script of bash cannot do: its word ends at a `=`, a list in commas is one
/// word to it, and it offers the words of every argument at once. This stands in front of it.
fn beyond_words() -> String {
    let schema = Scenario::json_schema();
    let mut cases = String::new();
    for (table, keys) in [
        ("path", "path"),
        ("flow", "flow/items"),
        ("measure", "measure"),
    ] {
        let keys = schema.pointer(&format!("/properties/{keys}/properties"));
        for (key, kind) in keys.and_then(|keys| keys.as_object()).into_iter().flatten() {
            let mut words = Vec::new();
            words_of(kind, &mut words);
            if (table, key.as_str()) == ("flow", "stack") {
                words = stacks();
            }
            if !words.is_empty() {
                // Of a flow, by whatever name.
                let named = match table {
                    "flow" => format!("|flow.*.{key}"),
                    _ => String::new(),
                };
                let words = words.join(" ");
                // Writing to a string cannot fail.
                let _ = writeln!(cases, "        {table}.{key}{named}) echo \"{words}\" ;;");
            }
        }
    }
    let grounds = GROUNDS.iter().filter(|g| g.far == Far::Here);
    let grounds: Vec<&str> = grounds.map(|g| g.name).collect();
    BEYOND_WORDS
        .replace("VALUES\n", &cases)
        .replace("GROUNDS", &grounds.join(" "))
}

/// The words that a schema accepts.
fn words_of(kind: &serde_json::Value, words: &mut Vec<String>) {
    if kind["type"] == "boolean" {
        words.extend(["true", "false"].map(str::to_owned));
    }
    words.extend(kind["const"].as_str().map(str::to_owned));
    for several in ["anyOf", "oneOf"] {
        for one in kind[several].as_array().into_iter().flatten() {
            words_of(one, words);
        }
    }
}

const BEYOND_WORDS: &str = r#"
_fullpipe_values() {
    case "$1" in
VALUES
    esac
}

# Names in the result or trace of a line: asked for one without a name, the program says which
# there are.
_fullpipe_names() {
    local program="$1" line="$2" command="$3" last="" of="" word said
    shift 3
    for word in ${line#*"$command"}; do
        [[ -z "$of" && "$word" != -* && "$last" != -* && -e "$word" ]] && of="$word"
        last="$word"
    done
    [[ -z "$of" ]] && return
    said="$("$program" "$command" "$of" "$@" "" 2>&1 >/dev/null)"
    [[ "$said" == *"there are"* ]] || return
    said="${said##*there are}"
    said="${said#:}"
    echo "${said//,/ }"
}

_fullpipe_beyond_words() {
    local line="${COMP_LINE:0:COMP_POINT}" word before IFS=$' \t\n'
    word="${line##*[[:space:]]}"
    before="${line%"$word"}"
    case "$before" in
        *[[:space:]]--set[[:space:]]|*[[:space:]]--where[[:space:]])
            if [[ "$word" == *=* ]]; then
                COMPREPLY=( $(compgen -W "$(_fullpipe_values "${word%%=*}")" -- "${word#*=}") )
                return 0
            fi
            ;;
        *[[:space:]]--grounds[[:space:]])
            local listed=""
            [[ "$word" == *,* ]] && listed="${word%,*},"
            COMPREPLY=( $(compgen -P "$listed" -W "GROUNDS" -- "${word##*,}") )
            return 0
            ;;
        *[[:space:]]export[[:space:]]*[[:space:]]--flow[[:space:]])
            COMPREPLY=( $(compgen -W "$(_fullpipe_names "$1" "$before" export --to csv --flow)" -- "$word") )
            return 0
            ;;
        *[[:space:]]figure[[:space:]]*[[:space:]]--of[[:space:]])
            COMPREPLY=( $(compgen -W "$(_fullpipe_names "$1" "$before" figure matrix --of)" -- "$word") )
            return 0
            ;;
        *[[:space:]]figure[[:space:]]|*[[:space:]]compare[[:space:]]|*[[:space:]]report[[:space:]])
            if [[ "$word" != -* ]]; then
                IFS=$'\n'
                COMPREPLY=( $(compgen -d -- "$word") )
                compopt -o filenames 2>/dev/null
                return 0
            fi
            ;;
    esac
    _fullpipe "$@"
    # The value of a key follows without a blank.
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _fullpipe_beyond_words -o nosort -o bashdefault -o default fullpipe
else
    complete -F _fullpipe_beyond_words -o bashdefault -o default fullpipe
fi
"#;

/// Stacks of a law or a model alone.
fn stacks() -> Vec<String> {
    let senders = |kind| matches!(kind, Kind::Law | Kind::Module | Kind::Model);
    let stacks = entries().filter(|e| senders(e.kind));
    stacks.map(|e| e.name.to_owned()).collect()
}

/// The command line with the names that its arguments can have, for shells to offer; a file is as
/// good a scenario, and any spelling as good a stack.
fn knowing() -> clap::Command {
    let owned = |names: Vec<&'static str>| names.into_iter().map(str::to_owned).collect();
    let scenarios: Vec<String> = owned(builtin::names().collect());
    let metrics: Vec<String> = owned(metrics::names().collect());
    let stacks = stacks();
    let flow: Vec<String> = flow_keys().map(|(key, _)| format!("{key}=")).collect();
    let schema = Scenario::json_schema();
    let keys = |table: &str| -> Vec<String> {
        let table_keys = schema
            .pointer(&format!("/properties/{table}/properties"))
            .and_then(|keys| keys.as_object());
        let keys = table_keys.into_iter().flat_map(|keys| keys.keys());
        keys.map(|key| format!("{table}.{key}=")).collect()
    };
    let top = ["duration=", "seeds="].map(str::to_owned);
    // Of the only flow; one among several has its name before the key.
    let of_flow = flow.iter().map(|key| format!("flow.{key}")).collect();
    let set: Vec<String> = [keys("path"), of_flow, keys("measure"), top.to_vec()].concat();
    let thresholds = MEASURES.iter().copied().chain(metrics::names());
    let thresholds: Vec<String> = thresholds.map(|name| format!("{name}=")).collect();
    let grounds = GROUNDS.iter().filter(|g| g.far == Far::Here);
    let grounds: Vec<String> = owned(grounds.map(|g| g.name).collect());
    let components = entries().map(|e| e.name.to_owned()).collect();
    let listed: Vec<String> = [components, scenarios.clone(), metrics.clone()].concat();
    let known = [
        ("run", "scenarios", &scenarios),
        ("run", "set", &set),
        ("agree", "scenario", &scenarios),
        ("agree", "set", &set),
        ("agree", "grounds", &grounds),
        ("check", "scenarios", &scenarios),
        ("check", "set", &set),
        ("falsify", "scenarios", &scenarios),
        ("falsify", "set", &set),
        ("list", "name", &listed),
        ("sweep", "scenario", &scenarios),
        ("emulate", "scenario", &scenarios),
        ("law", "stacks", &stacks),
        ("send", "stack", &stacks),
        ("send", "set", &flow),
        ("compare", "metrics", &metrics),
        ("compare", "threshold", &thresholds),
        ("figure", "metric", &metrics),
        ("figure", "only", &set),
        ("history", "metrics", &metrics),
    ];
    known
        .into_iter()
        .fold(Args::command(), |command, (name, arg, values)| {
            command.mut_subcommand(name, |c| {
                c.mut_arg(arg, |a| {
                    a.value_parser(PossibleValuesParser::new(values.clone()))
                })
            })
        })
}

/// `fullpipe man`.
pub fn man(args: &Man) -> Result<Exit, Failure> {
    let mut command = Args::command();
    command.build();
    match &args.dir {
        Some(dir) => write_pages(&command, dir)?,
        None if args.markdown => output::data(&markdown(&command))?,
        None => output::data(&page(&command)?)?,
    }
    Ok(Exit::Ok)
}

fn write_pages(command: &clap::Command, dir: &Path) -> Result<(), Failure> {
    let fail = |path: &Path, e: &std::io::Error| {
        Failure::io(format!("cannot write `{}`", path.display()), e)
    };
    std::fs::create_dir_all(dir).map_err(|e| fail(dir, &e))?;
    for command in std::iter::once(command).chain(every(command)) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = dir.join(format!("{name}.1"));
        std::fs::write(&path, page(command)?).map_err(|e| fail(&path, &e))?;
        output::say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn page(command: &clap::Command) -> Result<String, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|e| Failure::new(Exit::Internal, format!("cannot render the man page: {e}")))?;
    let text = String::from_utf8_lossy(&text);
    let usage = usage(command, "").replace('-', "\\-");
    let text = section_replaced(&text, "SYNOPSIS", |_| {
        format!(".SH SYNOPSIS\n.nf\n{usage}\n.fi\n")
    });
    Ok(section_replaced(&text, "EXTRA", examples))
}

/// A man page with another text in the place of a section.
fn section_replaced(page: &str, head: &str, with: impl Fn(&str) -> String) -> String {
    let title = format!(".SH {head}\n");
    let Some((before, rest)) = page.split_once(&title) else {
        return page.to_owned();
    };
    let end = rest.find("\n.SH ").map_or(rest.len(), |at| at + 1);
    format!("{before}{}{}", with(&rest[..end]), &rest[end..])
}

/// What follows the options: its headings are sections, its lines stay as they can be copied.
fn examples(body: &str) -> String {
    let mut out = String::new();
    let mut open = false;
    for line in body.lines() {
        match line.strip_suffix(':').filter(|l| !l.starts_with(' ')) {
            Some(head) if !open || head.split(' ').count() <= 2 => {
                out += if open { ".fi\n" } else { "" };
                out += &format!(".SH {}\n.nf\n", head.to_uppercase());
                open = true;
            }
            _ => {
                out += line;
                out.push('\n');
            }
        }
    }
    out + if open { ".fi\n" } else { "" }
}

/// `fullpipe law [OPTIONS] <STACK>...`.
fn usage(command: &clap::Command, name: &str) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let rest = usage.strip_prefix(command.get_bin_name().unwrap_or(name));
    match (name, rest) {
        ("", _) => usage.to_owned(),
        (name, rest) => format!("{name}{}", rest.unwrap_or(usage)),
    }
}

fn subcommands(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command
        .get_subcommands()
        .filter(|c| c.get_name() != "help" && !c.is_hide_set())
}

/// Subcommands and theirs, in the order of the help.
fn every(command: &clap::Command) -> Vec<&clap::Command> {
    subcommands(command)
        .flat_map(|c| std::iter::once(c).chain(every(c)))
        .collect()
}

/// `docs/cli.md`.
fn markdown(command: &clap::Command) -> String {
    let mut out = String::from(
        "# Command line\n\n<!-- Made by `fullpipe man --markdown`; a test compares the two. -->\n\n",
    );
    out += "Data goes to stdout, words and progress to stderr. A stdout that cannot be written to, as \
            a full disk or one that is closed (`>&-`), is exit code 3.\n\n";
    section(&mut out, command, "fullpipe");
    for sub in every(command) {
        let name = sub.get_bin_name().unwrap_or(sub.get_name());
        let _ = write!(out, "\n## {name}\n\n");
        section(&mut out, sub, name);
    }
    wrapped(&out)
}

fn section(out: &mut String, command: &clap::Command, name: &str) {
    let about = command
        .get_long_about()
        .or(command.get_about())
        .map(ToString::to_string);
    let about = about.unwrap_or_default();
    let about = fenced(&about);
    let stop = if about.ends_with(['.', '`']) { "" } else { "." };
    let usage = usage(command, name);
    // Writing to a string cannot fail.
    let _ = write!(out, "{about}{stop}\n\n```text\n{usage}\n```\n");
    if command.get_name() == "fullpipe" {
        let _ = write!(out, "\n| command | |\n|---|---|\n");
        for sub in subcommands(command) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(out, "| [`{0}`](#fullpipe-{0}) | {about} |", sub.get_name());
        }
    }
    let arguments: Vec<&clap::Arg> = command
        .get_arguments()
        .filter(|a| !is_everywhere(a))
        .collect();
    if !arguments.is_empty() {
        let _ = write!(out, "\n| argument | |\n|---|---|\n");
    }
    for argument in arguments {
        let _ = writeln!(out, "| {} | {} |", spelling(argument), meaning(argument));
    }
    let after = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string);
    for block in after
        .unwrap_or_default()
        .split("\n\n")
        .filter(|b| !b.is_empty())
    {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        // Examples are indented below their heading; what is not is prose.
        if !body.is_empty() && !body.starts_with(' ') {
            let _ = write!(out, "\n{}\n", block.replace('\n', " "));
            continue;
        }
        let body: Vec<&str> = body
            .lines()
            .map(|l| l.strip_prefix("  ").unwrap_or(l))
            .collect();
        let _ = write!(out, "\n{head}\n\n```text\n{}\n```\n", body.join("\n"));
    }
}

/// Indented lines are columns: as they stand, between fences.
fn fenced(text: &str) -> String {
    let mut out = String::new();
    let mut columns = false;
    for line in text.lines() {
        let indented = line.starts_with("  ");
        if indented != columns {
            out += match (indented, out.ends_with("\n\n")) {
                (true, true) => "```text\n",
                (true, false) => "\n```text\n",
                (false, _) => "```\n",
            };
            columns = indented;
        }
        out += line.strip_prefix("  ").unwrap_or(line);
        out.push('\n');
    }
    if columns {
        out += "```\n";
    }
    out.trim_end().to_owned()
}

/// True of the arguments that clap gives to commands: an own `--version` takes a value.
fn is_everywhere(argument: &clap::Arg) -> bool {
    use clap::ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(argument.get_action(), Help | HelpShort | HelpLong | Version)
}

fn spelling(argument: &clap::Arg) -> String {
    let value = argument.get_value_names().map(|names| {
        names
            .iter()
            .map(|n| n.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    });
    let takes_value = argument.get_action().takes_values();
    let mut names = Vec::new();
    names.extend(argument.get_short().map(|c| format!("-{c}")));
    names.extend(argument.get_long().map(|l| format!("--{l}")));
    let value = value.filter(|_| takes_value).map(|v| format!("<{v}>"));
    if names.is_empty() {
        return format!("`{}`", value.unwrap_or_default());
    }
    match value {
        Some(value) => format!("`{} {value}`", names.join(", ")),
        None => format!("`{}`", names.join(", ")),
    }
}

fn meaning(argument: &clap::Arg) -> String {
    let mut text = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default()
        .replace('|', "\\|");
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(possible)
        .collect();
    if !values.is_empty() && argument.get_action().takes_values() {
        text += &format!(": {}", values.join(", "));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|v| format!("`{}`", v.to_string_lossy()))
        .collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        text += &format!(" [default: {}]", defaults.join(", "));
    }
    text
}

fn possible(value: &PossibleValue) -> String {
    match value.get_help() {
        Some(help) => format!("`{}` ({help})", value.get_name()),
        None => format!("`{}`", value.get_name()),
    }
}
