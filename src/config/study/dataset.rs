//! The data set of a workload.

use crate::config::names::names;

names! {
    /// The data sets that have a name.
    DatasetName {
        /// MNIST: 60,000 training and 10,000 test images of 28×28×1.
        Mnist = "mnist",
        /// Fashion-MNIST: 60,000 training and 10,000 test images of 28×28×1.
        FashionMnist = "fashion-mnist",
        /// CIFAR-10: 50,000 training and 10,000 test images of 32×32×3.
        Cifar10 = "cifar-10",
    }
}
