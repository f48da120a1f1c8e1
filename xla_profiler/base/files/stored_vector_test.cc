#include "xla_profiler/base/files/stored_vector.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;

constexpr size_t kMany = 100000;

StoredVector<int64_t> Numbers(size_t count) {
  StoredVector<int64_t> numbers;
  numbers.elements().resize(count);
  std::iota(numbers.elements().begin(), numbers.elements().end(), 0);
  return numbers;
}

void ExpectNumbers(const StoredVector<int64_t>& numbers, size_t count) {
  ASSERT_EQ(numbers.size(), count);
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(numbers[i], i);
}

TEST(StoredVectorTest, ManyElementsAreReadFromAFile) {
  const TemporaryDirectory directory;
  StoredVector<int64_t> numbers = Numbers(kMany);
  const int64_t* before = numbers.view().data();
  numbers.Store(FileSystem::Posix(), directory.path());
  EXPECT_NE(numbers.view().data(), before);
  ExpectNumbers(numbers, kMany);
  numbers.Forget();
  ExpectNumbers(numbers, kMany);
  EXPECT_THAT(directory.List(), IsEmpty()) << "the file has no name";
}

TEST(StoredVectorTest, FewElementsStayWhereTheyAre) {
  const TemporaryDirectory directory;
  for (const size_t count : {0, 100}) {
    StoredVector<int64_t> numbers = Numbers(count);
    const int64_t* before = numbers.view().data();
    numbers.Store(FileSystem::Posix(), directory.path());
    EXPECT_EQ(numbers.view().data(), before);
    numbers.Forget();
    ExpectNumbers(numbers, count);
  }
}

TEST(StoredVectorTest, StaysInMemoryWhereItCannotBeWritten) {
  const TemporaryDirectory directory;
  for (const Operation operation :
       {Operation::kCreateTemporary, Operation::kAppend, Operation::kMapTemporary}) {
    FaultyFileSystem file_system(FileSystem::Posix());
    file_system.Fail(operation, 1, absl::ResourceExhaustedError("disk full"));
    StoredVector<int64_t> numbers = Numbers(kMany);
    const int64_t* before = numbers.view().data();
    numbers.Store(file_system, directory.path());
    EXPECT_EQ(numbers.view().data(), before) << operation;
    ExpectNumbers(numbers, kMany);
  }
}

}  // namespace
}  // namespace meridian
