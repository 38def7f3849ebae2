//! `dps-train init` and `dps-train configs`: where a configuration comes from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::config::{Choices, DatasetName, NetworkName, OptimizerName, SHIPPED, ScheduleName, template};
use crate::{Error, Result};

/// What the command line says of a new configuration; the rest is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Given {
    /// The data set.
    pub dataset: Option<DatasetName>,
    /// The network; the one that fits the data set where it is not given.
    pub network: Option<NetworkName>,
    /// The optimizer.
    pub optimizer: Option<OptimizerName>,
    /// The schedule; the data set's usual one where it is not given.
    pub schedule: Option<ScheduleName>,
}

/// Asks a person a question and returns the line that was answered; `None` at the end of the input.
pub type Ask<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// Writes a new configuration with comments to `path`. What is not given is asked; `ask` is `None` where nobody can be asked.
///
/// # Errors
/// [`Error::Configuration`] where the choices do not fit each other, nobody answers, or the file is there already or cannot be written.
pub fn init(path: &Path, given: &Given, ask: Option<Ask>) -> Result<()> {
    let refuse = |problem: String| Err(Error::Configuration { path: path.display().to_string(), problems: vec![problem] });
    if std::fs::symlink_metadata(path).is_ok() {
        return refuse("expected no such file, found one; name another, or move it away".to_owned());
    }
    let missing: Vec<&str> = [(given.dataset.is_none(), "--dataset"), (given.optimizer.is_none(), "--optimizer")]
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, name)| *name)
        .collect();
    let mut nobody = |_: &str| None;
    let ask = match ask {
        None if !missing.is_empty() => {
            return refuse(format!("expected {}, found neither that nor a terminal to ask at; add it", missing.join(" and ")));
        }
        None => &mut nobody,
        Some(ask) => ask,
    };
    let choices = (|| {
        let dataset = choose(given.dataset, "Data set", DatasetName::NAMES, DatasetName::FashionMnist, ask)?;
        let network = given.network.unwrap_or(dataset.spec().usual.network);
        let optimizer = choose(given.optimizer, "Optimizer", OptimizerName::NAMES, OptimizerName::Momentum, ask)?;
        Some(Choices { dataset, network, optimizer, schedule: given.schedule.unwrap_or(dataset.spec().usual.schedule) })
    })();
    let Some(choices) = choices else {
        return refuse(format!("expected an answer, found the end of the input; give {} instead", missing.join(" and ")));
    };
    let written =
        OpenOptions::new().write(true).create_new(true).open(path).and_then(|mut file| file.write_all(template(choices).as_bytes()));
    match written {
        Ok(()) => Ok(()),
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            refuse(format!("expected its folder to be there, found none ({cause}); make it first"))
        }
        Err(cause) => refuse(format!("the file cannot be written ({cause}); name another")),
    }
}

/// What is given, or the answer to a question; an empty answer means the `usual` one.
fn choose<T: Copy + std::fmt::Display + std::str::FromStr<Err = String>>(
    given: Option<T>,
    what: &str,
    names: &[&str],
    usual: T,
    ask: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<T> {
    if given.is_some() {
        return given;
    }
    let mut question = format!("{what} ({}) [{usual}]: ", names.join(", "));
    loop {
        let answer = ask(&question)?;
        match answer.trim() {
            "" => return Some(usual),
            word => match word.parse() {
                Ok(choice) => return Some(choice),
                Err(problem) => question = format!("{problem}\n{what} [{usual}]: "),
            },
        }
    }
}

/// The configurations that come with the program, a line each: name and purpose.
pub fn list() -> String {
    let width = SHIPPED.iter().map(|shipped| shipped.name.len()).max().unwrap_or(0);
    let lines: String = SHIPPED.iter().map(|shipped| format!("{:width$}  {}\n", shipped.name, shipped.purpose())).collect();
    format!("{lines}\nFigures are those of Lee, Ajanthan, Torr and Jaggi (ICLR 2021). dps-train configs NAME prints a configuration.\n")
}

/// The text of a configuration that comes with the program; its name may lack ".toml".
///
/// # Errors
/// [`Error::Configuration`] where there is none of that name, with the nearest one.
pub fn text(name: &str) -> Result<&'static str> {
    let file = if name.ends_with(".toml") { name.to_owned() } else { format!("{name}.toml") };
    if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == file) {
        return Ok(shipped.text);
    }
    let nearest =
        SHIPPED.iter().map(|shipped| (strsim::jaro_winkler(shipped.name, &file), shipped.name)).max_by(|a, b| a.0.total_cmp(&b.0));
    let nearest = nearest.map_or(String::new(), |(_, name)| format!("; did you mean {name}?"));
    let problem =
        format!("expected a configuration that comes with the program, found none of this name{nearest} \"dps-train configs\" lists them");
    Err(Error::Configuration { path: name.to_owned(), problems: vec![problem] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_is_asked_until_it_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.toml");
        let mut answers = ["mnits", "mnist", ""].into_iter();
        let mut asked = Vec::new();
        let mut ask = |question: &str| {
            asked.push(question.to_owned());
            answers.next().map(str::to_owned)
        };
        init(&path, &Given::default(), Some(&mut ask)).unwrap();
        let study = crate::config::load(&path, &[]).unwrap().study;
        assert_eq!((study.workload.dataset, study.workload.optimizer), (DatasetName::Mnist.into(), OptimizerName::Momentum));
        assert_eq!(asked[0], "Data set (mnist, fashion-mnist, cifar-10) [fashion-mnist]: ");
        assert!(asked[1].starts_with("expected one of mnist, fashion-mnist, cifar-10, found \"mnits\"\n"), "{}", asked[1]);
        assert_eq!(asked.len(), 3);
    }

    #[test]
    fn nothing_is_overwritten_and_nobody_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.toml");
        let whole = Given { dataset: Some(DatasetName::Cifar10), optimizer: Some(OptimizerName::Sgd), ..Given::default() };
        let refused = |given: &Given, ask: Option<Ask>, path: &Path| init(path, given, ask).unwrap_err().to_string();
        assert!(refused(&Given::default(), None, &path).contains("expected --dataset and --optimizer, found neither"));
        assert!(refused(&Given::default(), Some(&mut |_| None), &path).contains("found the end of the input; give --dataset and"));
        assert!(refused(&whole, None, &folder.path().join("no/new.toml")).contains("make it first"));
        assert!(!path.exists());
        init(&path, &whole, None).unwrap();
        assert_eq!(crate::config::load(&path, &[]).unwrap().study.workload.schedule, ScheduleName::LinearDecay);
        assert!(refused(&whole, None, &path).contains("expected no such file, found one"));
    }

    #[test]
    fn configurations_are_listed_and_printed() {
        assert_eq!(list().lines().count(), SHIPPED.len() + 2);
        for name in ["mnist-simple-cnn-sgd", "mnist-simple-cnn-sgd.toml"] {
            assert!(text(name).unwrap().starts_with("# MNIST, Simple-CNN, SGD"));
        }
        let problem = text("mnist-simple-cnn-sdg").unwrap_err().to_string();
        assert!(problem.contains("did you mean mnist-simple-cnn-sgd.toml?"), "{problem}");
    }
}
