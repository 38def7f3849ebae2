//! `dps-train init` and `dps-train configs`: where a configuration comes from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::config::reader::nearest;
use crate::data::{DatasetChoice, DatasetName, OwnDataset};
use crate::network::{NetworkChoice, NetworkName};
use crate::optimizer::{OptimizerName, ScheduleName};
use crate::settings::{Choices, Configuration, SHIPPED, Shipped, names_results, parse, template};
use crate::{Error, Result};

/// Choices of a new configuration that the command line gives; the rest is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct Given {
    /// Data set.
    #[arg(long, value_name = "NAME", value_enum)]
    pub dataset: Option<DatasetName>,
    /// Images of your own, in place of --dataset: a folder or file below the data folder, or an absolute path.
    #[arg(long = "path", id = "own", value_name = "PATH", conflicts_with = "dataset")]
    pub path: Option<String>,
    /// Network [default: the one that fits the data set; for your own images lenet-300-100]
    #[arg(long, value_name = "NAME", value_enum)]
    pub network: Option<NetworkName>,
    /// Write the network as a list of its layers, to make one of your own of it.
    #[arg(long)]
    pub listed: bool,
    /// Optimizer.
    #[arg(long, value_name = "NAME", value_enum)]
    pub optimizer: Option<OptimizerName>,
    /// Learning-rate schedule [default: linear-decay for cifar-10, else constant]
    #[arg(long, value_name = "NAME", value_enum)]
    pub schedule: Option<ScheduleName>,
}

/// Asks a person a question and returns the line that was answered; `None` at the end of the input.
pub type Ask<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// The refusal of a name for a configuration, where dps-train would take the file for a result file.
pub fn refused_name(path: &Path) -> Option<&'static str> {
    names_results(path).then_some("expected the name of a configuration, such as study.toml, found that of a result file; name another")
}

/// Writes a new configuration with comments to `path`, and gives it. What is not given is asked; `ask` is `None` where nobody can be asked. `classes`
/// counts the classes of images of one's own, for the last layer of a list.
///
/// # Errors
/// [`Error::Configuration`] where the choices do not fit each other, nobody answers, or the file is there already or cannot be written; the error
/// of `classes`.
pub fn init(path: &Path, given: &Given, ask: Option<Ask>, classes: &dyn Fn(&DatasetChoice) -> Result<u32>) -> Result<Configuration> {
    let refuse = |problem: String| Err(Error::Configuration { path: path.display().to_string(), problems: vec![problem] });
    if std::fs::symlink_metadata(path).is_ok() {
        return refuse("expected no such file, found one; name another, or move it away".to_owned());
    }
    if let Some(problem) = refused_name(path) {
        return refuse(problem.to_owned());
    }
    let missing: Vec<&str> =
        [(given.dataset.is_none() && given.path.is_none(), "--dataset or --path"), (given.optimizer.is_none(), "--optimizer")]
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
    let own = given.path.as_ref().map(|path| DatasetChoice::Own(OwnDataset::at(path.clone())));
    let chosen = (|| {
        let dataset = match own {
            Some(own) => own,
            None => choose(given.dataset, "Data set", DatasetName::NAMES, DatasetName::FashionMnist, ask)?.into(),
        };
        Some((dataset, choose(given.optimizer, "Optimizer", OptimizerName::NAMES, OptimizerName::Momentum, ask)?))
    })();
    let Some((dataset, optimizer)) = chosen else {
        return refuse(format!("expected an answer, found the end of the input; give {} instead", missing.join(" and ")));
    };
    let network = given.network.unwrap_or(dataset.usual().network);
    let network = match (given.listed, &dataset) {
        (false, _) => NetworkChoice::Named(network),
        (true, DatasetChoice::Named(name)) => NetworkChoice::Listed(network.layers(name.spec().classes)),
        (true, DatasetChoice::Own(_)) => NetworkChoice::Listed(network.layers(classes(&dataset)?)),
    };
    let schedule = given.schedule.unwrap_or(dataset.usual().schedule);
    let text = template(&Choices { dataset, network, optimizer, schedule });
    // A path may be none that a configuration can have.
    let configuration = parse(&path.display().to_string(), &text, &[])?;
    // A part of a configuration would be in the way of the next try.
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()).inspect_err(|_| drop(std::fs::remove_file(path))));
    match written {
        Ok(()) => Ok(configuration),
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            refuse(format!("expected its folder to be there, found none ({cause}); make it first"))
        }
        Err(cause) => refuse(format!("the file cannot be written ({cause}); name another")),
    }
}

/// Returns the choice that is given, or asks for it; an empty answer means the `usual` one.
fn choose<T: Copy + std::fmt::Display + std::str::FromStr>(
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
                Err(_) => question = format!("expected one of {}, found \"{word}\"\n{what} [{usual}]: ", names.join(", ")),
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
    if let Some(shipped) = Shipped::named(name) {
        return Ok(shipped.text);
    }
    let file = format!("{}.toml", name.strip_suffix(".toml").unwrap_or(name));
    let nearest = nearest(&file, SHIPPED.iter().map(|shipped| shipped.name));
    let nearest = nearest.map_or(String::new(), |name| format!("did you mean {name}? "));
    let problem =
        format!("expected a configuration that comes with the program, found none of this name; {nearest}\"dps-train configs\" lists them");
    Err(Error::Configuration { path: name.to_owned(), problems: vec![problem] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_data(_: &DatasetChoice) -> Result<u32> {
        panic!("only a list of layers for data of one's own counts classes")
    }

    #[test]
    fn data_and_a_network_of_ones_own_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.toml");
        let given = Given { path: Some("x/digits.npz".into()), listed: true, optimizer: Some(OptimizerName::Adam), ..Given::default() };
        init(&path, &given, None, &|_| Ok(7)).unwrap();
        let workload = crate::settings::load(&path, &[]).unwrap().study.workload;
        assert_eq!(workload.dataset, DatasetChoice::Own(OwnDataset { path: "x/digits.npz".into(), name: "digits".into() }));
        assert_eq!(workload.network, NetworkChoice::Listed(NetworkName::Lenet300x100.layers(7)));
        let refused = init(&folder.path().join("other.toml"), &Given { path: Some(String::new()), ..given }, None, &|_| Ok(7));
        assert!(refused.unwrap_err().to_string().contains("expected a folder or file below the data folder"));
        assert!(!folder.path().join("other.toml").exists());
    }

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
        init(&path, &Given::default(), Some(&mut ask), &no_data).unwrap();
        let study = crate::settings::load(&path, &[]).unwrap().study;
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
        let refused = |given: &Given, ask: Option<Ask>, path: &Path| init(path, given, ask, &no_data).unwrap_err().to_string();
        assert!(refused(&Given::default(), None, &path).contains("expected --dataset or --path and --optimizer, found neither"));
        assert!(
            refused(&Given::default(), Some(&mut |_| None), &path).contains("found the end of the input; give --dataset or --path and")
        );
        assert!(refused(&whole, None, &folder.path().join("no/new.toml")).contains("make it first"));
        assert!(!path.exists());
        init(&path, &whole, None, &no_data).unwrap();
        assert_eq!(crate::settings::load(&path, &[]).unwrap().study.workload.schedule, ScheduleName::LinearDecay);
        assert!(refused(&whole, None, &path).contains("expected no such file, found one"));
    }

    #[test]
    fn configurations_are_listed_and_printed() {
        assert_eq!(list().lines().count(), SHIPPED.len() + 2);
        assert!(text("own-data-digits").unwrap().contains("digits.npz"));
        for name in ["mnist-simple-cnn-sgd", "mnist-simple-cnn-sgd.toml"] {
            assert!(text(name).unwrap().starts_with("# MNIST, Simple-CNN, SGD"));
        }
        let problem = text("mnist-simple-cnn-sdg").unwrap_err().to_string();
        assert!(problem.contains("did you mean mnist-simple-cnn-sgd.toml?"), "{problem}");
    }
}
