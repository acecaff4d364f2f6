//! What a cell needs of this machine in a guest.

use std::path::PathBuf;

use crate::settings::{Exec, Program, Settings, template};

/// Programs and files, as the sweep names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Programs: names that are looked up in `PATH`, or paths. With each the package that it is in, where the sweep says that.
    pub programs: Vec<(String, Option<String>)>,
    /// Files and folders that have to be there.
    pub files: Vec<String>,
    /// Files and folders that come along if they are there: a program may make them itself.
    pub mentioned: Vec<String>,
    /// The folder of the sweep file, from which relative paths count.
    pub folder: PathBuf,
}

impl Wanted {
    /// What a cell needs; `None` if it runs no programs.
    pub fn of(settings: &Settings) -> Option<Self> {
        settings.exec.as_deref().map(Self::of_exec)
    }

    /// What these programs need.
    pub(super) fn of_exec(exec: &Exec) -> Self {
        let Exec { server, client, files, dir, .. } = exec;
        let mut wanted = Self { folder: PathBuf::from(dir), ..Self::default() };
        for Program { command, package, .. } in [server, client] {
            let Some((program, arguments)) = command.split_first() else { continue };
            // What is known only when a repeat runs, such as its scratch folder, holds nothing yet.
            wanted.programs.extend(below_folder(program).map(|program| (program, package.clone())));
            let mentioned = arguments.iter().filter(|argument| argument.starts_with("{dir}/"));
            wanted.mentioned.extend(mentioned.filter_map(|argument| below_folder(argument)));
        }
        wanted.files.extend(files.iter().filter_map(|file| below_folder(file)));
        wanted
    }
}

/// A template with the sweep's folder as `.`, so that it is a path from there. `None` if there are other placeholders in it.
fn below_folder(template: &str) -> Option<String> {
    template::fill_all(template, |name| (name == "dir").then(|| ".".to_owned())).ok()
}

#[cfg(test)]
mod tests {
    use super::Wanted;
    use crate::settings::{Exec, Program, Settings};

    #[test]
    fn programs_files_and_what_is_named_by_the_folder_are_wanted() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let program = |command: &[&str], package: Option<&str>| Program {
            command: words(command),
            package: package.map(str::to_owned),
            ..Program::default()
        };
        let exec = Exec {
            server: program(&["escript", "{dir}/echo.escript", "{{x}}", "--log={dir}/log"], Some("erlang-base")),
            client: program(&["{dir}/bin/client", "{server_addr}", "{dir}/data"], None),
            files: words(&["/usr/lib/erlang", "{dir}/more"]),
            dir: "/somewhere".to_owned(),
            ..Exec::default()
        };
        let settings = Settings { exec: Some(Box::new(exec)), ..Settings::default() };
        let wanted = Wanted::of(&settings).expect("wanted");
        assert_eq!(
            wanted.programs,
            [("escript".to_owned(), Some("erlang-base".to_owned())), ("./bin/client".to_owned(), None)]
        );
        assert_eq!(wanted.files, ["/usr/lib/erlang", "./more"]);
        assert_eq!(wanted.mentioned, ["./echo.escript", "./data"]);
        assert_eq!(wanted.folder.to_str(), Some("/somewhere"));
        assert_eq!(Wanted::of(&Settings::default()), None);

        // What is only made when the repeat runs cannot be packed before.
        let made = Exec { client: program(&["{scratch}/made", "{scratch}/x"], None), ..Exec::default() };
        let wanted = Wanted::of(&Settings { exec: Some(Box::new(made)), ..Settings::default() }).expect("wanted");
        assert_eq!(wanted, Wanted::default());
    }
}
