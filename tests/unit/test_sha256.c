/* SHA-256 against the examples of FIPS 180-4, and its two ways of mixing against each other. */
#include "engine/base/sha256.h"
#include "tests/tg_test.h"

static int is(const char *message, size_t times, int plain, const char *want)
{
    tgi_sha256 h;
    char text[TGI_SHA256_TEXT];
    tgi_sha256_begin(&h);
    h.plain = plain;
    for (size_t i = 0; i < times; i++)
        tgi_sha256_add(&h, message, strlen(message));
    tgi_sha256_end(&h, text);
    return strcmp(text, want) == 0;
}

static void test_the_standards_examples_come_out(void)
{
    for (int plain = 0; plain < 2; plain++) {
        CHECK(is("", 1, plain,
                 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
        CHECK(is("abc", 1, plain,
                 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
        CHECK(is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, plain,
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
        CHECK(is("aaaaaaaaaa", 100000, plain,
                 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
    }
}

/* Every length up to four blocks, in pieces of every size up to the length. */
static void test_pieces_do_not_matter(void)
{
    char bytes[257], whole[TGI_SHA256_TEXT], pieces[TGI_SHA256_TEXT];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37 + 11);
    int different = 0;
    for (size_t n = 0; n < sizeof bytes; n++)
        for (size_t step = 1; step <= n; step += 1 + n / 7) {
            tgi_sha256 a, b;
            tgi_sha256_begin(&a);
            tgi_sha256_begin(&b);
            b.plain = 1;
            tgi_sha256_add(&a, bytes, n);
            for (size_t at = 0; at < n; at += step)
                tgi_sha256_add(&b, bytes + at, n - at < step ? n - at : step);
            tgi_sha256_end(&a, whole);
            tgi_sha256_end(&b, pieces);
            different += strcmp(whole, pieces) != 0;
        }
    CHECK_EQ(different, 0);
}

int main(void)
{
    RUN(test_the_standards_examples_come_out);
    RUN(test_pieces_do_not_matter);
    return TEST_END();
}
