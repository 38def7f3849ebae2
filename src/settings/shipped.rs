//! The configurations that come with the program: the files of `configs/`.

/// A configuration that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    /// Name of the file.
    pub name: &'static str,
    /// Text of the file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        /// All of them, the paper's workloads first.
        pub const SHIPPED: &[Shipped] = &[$(Shipped { name: $name, text: include_str!(concat!("../../configs/", $name)) }),+];
    };
}

shipped! {
    "mnist-simple-cnn-momentum.toml",
    "mnist-simple-cnn-nesterov.toml",
    "mnist-simple-cnn-sgd.toml",
    "fashion-mnist-simple-cnn-momentum-goal-0.12.toml",
    "fashion-mnist-simple-cnn-momentum-goal-0.14.toml",
    "fashion-mnist-simple-cnn-nesterov-goal-0.12.toml",
    "fashion-mnist-simple-cnn-nesterov-goal-0.14.toml",
    "fashion-mnist-simple-cnn-sgd-goal-0.12.toml",
    "fashion-mnist-simple-cnn-sgd-goal-0.14.toml",
    "cifar-10-resnet-8-momentum-constant.toml",
    "cifar-10-resnet-8-momentum-linear-decay.toml",
    "cifar-10-resnet-8-nesterov-linear-decay.toml",
    "cifar-10-resnet-8-sgd-constant.toml",
    "cifar-10-resnet-8-sgd-linear-decay.toml",
    "smoothness-cifar-10-resnet-8.toml",
    "smoothness-fashion-mnist-simple-cnn.toml",
    "smoothness-mnist-simple-cnn.toml",
    "quickstart.toml",
    "smoothness-small.toml",
    "study-small.toml",
    "examples/adamw-fashion-mnist.toml",
    "examples/averaged-weights.toml",
    "examples/lenet-5-caffe.toml",
    "examples/listed-convolutions.toml",
    "examples/listed-group-norm.toml",
    "examples/listed-residual.toml",
    "examples/own-data-digits.toml",
    "examples/own-data-patches.toml",
}

impl Shipped {
    /// The configuration of this name, which may lack `examples/` and ".toml".
    pub fn named(name: &str) -> Option<&'static Shipped> {
        let name = name.strip_suffix(".toml").unwrap_or(name);
        let is_named =
            |file: &str| file.strip_suffix(".toml").is_some_and(|file| file == name || file.strip_prefix("examples/") == Some(name));
        SHIPPED.iter().find(|shipped| is_named(shipped.name))
    }

    /// Purpose of the configuration: the first sentence of the comment at its beginning. Figures are the paper's.
    pub fn purpose(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect::<Vec<_>>().join(" ");
        let sentence = comment.split_once(". ").map_or(comment.as_str(), |(first, _)| first);
        sentence.trim_end_matches('.').replace(" of Lee, Ajanthan, Torr and Jaggi (ICLR 2021)", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed_and_says_what_it_is_for() {
        let files = |folder: &str, before: &'static str| {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            std::fs::read_dir(folder).unwrap().map(move |file| format!("{before}{}", file.unwrap().file_name().into_string().unwrap()))
        };
        let files = files("configs", "").chain(files("configs/examples", "examples/"));
        let mut files: Vec<String> = files.filter(|name| name.ends_with(".toml")).collect();
        let mut names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
        files.sort();
        names.sort_unstable();
        assert_eq!(names, files);
        for shipped in SHIPPED {
            let purpose = shipped.purpose();
            assert!(purpose.len() > 40 && purpose.len() < 300, "{}: {purpose}", shipped.name);
        }
        let sgd = SHIPPED.iter().find(|shipped| shipped.name == "mnist-simple-cnn-sgd.toml").unwrap();
        assert_eq!(sgd.purpose(), "MNIST, Simple-CNN, SGD, a constant learning rate, goal error 0.02: figures 1a, 2, 5, 7, 12 and 13");
    }
}
